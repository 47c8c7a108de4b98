"""A plain Scrapy project. One line of its settings is Bowerbird's."""
