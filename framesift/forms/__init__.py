"""Forms of an answer: tables, pictures, what notebooks show."""
