"""What is a page worth that was never fetched?"""
