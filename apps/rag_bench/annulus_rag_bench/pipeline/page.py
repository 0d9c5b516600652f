"""The page: `streamlit run annulus_rag_bench/pipeline/page.py`. One to ask, one that measures.

Streamlit runs this file from top to bottom at each click.
"""

import streamlit as st

from annulus_rag_bench.pipeline.ask_page import ask_page
from annulus_rag_bench.pipeline.evaluation_page import evaluation_page

STYLE = """
<style>
  .answer { font-size: 1.15rem; line-height: 1.5; margin: 0; }
  .answer a, .source a { color: inherit; text-underline-offset: .2em; text-decoration-thickness: 1px; }
  .answer a { font-weight: 600; }
  .source h4 { margin: 0; padding: 0; }
  .source p { margin: .35rem 0 0; }
  .facts { opacity: .75; font-size: .85rem; }
  .steps { display: grid; grid-template-columns: max-content max-content 1fr; gap: .2rem .8rem; align-items: center; }
  .steps span:nth-child(3n+2) { text-align: right; font-variant-numeric: tabular-nums; }
  .steps i { display: block; height: .6rem; min-width: 2px; border-radius: 3px; background: #2a9d8f; }
</style>
"""

st.set_page_config(page_title="Answers from articles", layout="wide")
st.html(STYLE)
pages = [
    # Without icons: Streamlit has the icon of a page fetched from elsewhere, as that of the browser's tab.
    st.Page(ask_page, title="Ask", default=True),
    st.Page(evaluation_page, title="Evaluation", url_path="evaluation"),
]
st.navigation(pages).run()
