"""The whole verdict on one URL, from what is stored of a crawl and its frozen settings; no request is made, nothing changed.

`answer` is what is told, `explainer` puts it together: `rules` judges the URL again, `outcome` says what became of it, `unseen`
why it was never admitted, `path` how it is reached, `facts` what else is known, `words` says it for people.
"""
