"""The web page: search, dashboard, why this URL, and the JSON API beside them. FastAPI makes it, uvicorn serves it."""
