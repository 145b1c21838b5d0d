export { SECTIONS } from "./nav";
export { SettingsPage } from "./settings-page";
