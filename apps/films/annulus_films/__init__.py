"""Film recommendations: a sentence in, films whose plots are like it out."""
