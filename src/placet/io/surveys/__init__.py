"""Files of survey tools: best-worst choices (MaxDiff), and rankings as Qualtrics and SurveyJS export them."""
