"""What is another look at a known page worth?"""
