cd other && tenure trust accept .
