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
    circuit_open: "The model is taking a break",
    transient: "The model didn’t respond",
    network: "Can’t reach the model",
    quota: "Your provider account is out of credit",
    auth: "The provider rejected the API key",
    model_not_found: "The provider doesn’t have this model",
    context_length: "This chat is too long for the model",
    too_large: "This request is too large for the provider",
    content_filter: "The provider blocked this request",
    empty_answer: "The model returned an empty answer",
    broken_off: "The answer broke off",
    timeout: "The run took too long",
    recursion: "The run took too many steps",
    generic: "The run failed",
  },
  text: {
    busy: "It’s getting too many requests right now. Wait a moment and try again, or switch models.",
    circuit_open:
      "It failed several times in a row, so it isn’t called for a minute. To try anyway, test it under Models, or switch models.",
    transient: "Several attempts failed. Try again in a moment, or switch models.",
    network: "Couldn’t connect to the provider. Check the network and the model’s address.",
    quota: "Check your plan and billing with the provider, or switch models.",
    auth: "Check the provider’s API key on the server, or switch models.",
    model_not_found: "Check the model’s name and address in the configuration, or switch models.",
    context_length: "Start a new chat, or switch to a model with a larger context window.",
    too_large: "Leave out pictures and long pastes, summarize the chat with /compact, or switch models.",
    content_filter: "Try rewording your message, or switch models.",
    empty_answer: "Try again, reword your message, or switch models.",
    broken_off: "What it said until then stands above. Continue from there, or try again.",
    timeout: "The work so far is saved. Tell DeerFlow how to continue.",
    recursion: "The work so far is saved. Tell DeerFlow how to continue.",
    generic: "The work so far is saved. You can try again.",
  },
  retry: "Try again",
  goOn: "Continue",
  /** Sent in the person's name. */
  goOnMessage: "Continue where your answer broke off.",
  changeModel: "Try with another model",
  settings: "Models",
  details: "Details",
};
