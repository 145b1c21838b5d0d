export { useDoneNotification } from "./use-done-notification";
