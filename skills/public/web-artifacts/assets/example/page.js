const left = document.querySelector("#left");
let timer;
document.querySelector("#start").addEventListener("click", () => {
  clearInterval(timer);
  const end = Date.now() + 60000 * Number(document.querySelector("#minutes").value);
  timer = setInterval(() => {
    const seconds = Math.max(0, Math.round((end - Date.now()) / 1000));
    left.textContent = seconds ? `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}` : "Your tea is ready.";
    if (!seconds) clearInterval(timer);
  }, 250);
});
