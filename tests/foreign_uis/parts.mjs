// What the specs share.
export const LONG = Array.from({ length: 100 }, (_, index) => `word${index}`).join(" ");
export const query = new URLSearchParams({ apiUrl: process.env.DEERFLOW_URL, apiKey: process.env.DEERFLOW_TOKEN });
