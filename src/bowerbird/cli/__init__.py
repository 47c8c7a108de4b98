"""How do people see and steer it? The commands."""
