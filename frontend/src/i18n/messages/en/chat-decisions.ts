/** Texts of `chat` where the person must act: questions and decisions. */
export const clarification = {
  title: "DeerFlow has a question",
  options: "Suggested answers",
  own: "Answer in your own words",
  kind: {
    missing_info: "More information needed",
    ambiguous_requirement: "This could mean several things",
    approach_choice: "Choose an approach",
    risk_confirmation: "Please confirm",
    suggestion: "A suggestion",
  },
};
