/** Texts of `chat` where the person must act: questions, decisions, failures. */
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

export const error = {
  title: {
    busy: "The model is overloaded",
    transient: "The model didn’t respond",
    network: "Can’t reach the model",
    quota: "Your provider account is out of credit",
    auth: "The provider rejected the API key",
    model_not_found: "The provider doesn’t have this model",
    context_length: "This chat is too long for the model",
    content_filter: "The provider blocked this request",
    empty_answer: "The model returned an empty answer",
    timeout: "The run took too long",
    recursion: "The run took too many steps",
    generic: "The run failed",
  },
  text: {
    busy: "It’s getting too many requests right now. Wait a moment and try again, or switch models.",
    transient: "Several attempts failed. Try again in a moment, or switch models.",
    network: "Couldn’t connect to the provider. Check the network and the model’s address.",
    quota: "Check your plan and billing with the provider, or switch models.",
    auth: "Check the provider’s API key on the server, or switch models.",
    model_not_found: "Check the model’s name and address in the configuration, or switch models.",
    context_length: "Start a new chat, or switch to a model with a larger context window.",
    content_filter: "Try rewording your message, or switch models.",
    empty_answer: "Try again, reword your message, or switch models.",
    timeout: "The work so far is saved. Tell DeerFlow how to continue.",
    recursion: "The work so far is saved. Tell DeerFlow how to continue.",
    generic: "The work so far is saved. You can try again.",
  },
  retry: "Try again",
  changeModel: "Try with another model",
  settings: "Models",
  details: "Details",
};
