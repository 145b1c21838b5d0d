export { showNotice } from "./notice";
export { useDoneNotification } from "./use-done-notification";
