from .missing import word
