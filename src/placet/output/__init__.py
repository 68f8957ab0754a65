"""What people read: numbers as text, and markup made from templates."""
