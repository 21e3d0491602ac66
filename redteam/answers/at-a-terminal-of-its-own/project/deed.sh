python3 type.py
