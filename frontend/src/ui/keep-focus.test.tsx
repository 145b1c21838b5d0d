import { act, fireEvent, render, screen } from "@testing-library/react";
import { useState, type ReactNode } from "react";
import { afterEach, beforeEach, expect, it } from "vitest";
import { keepFocus } from "./keep-focus";

let end = () => {};
beforeEach(() => void (end = keepFocus(document)));
afterEach(() => end());

const settled = () =>
  act(async () => {
    await new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  });
const press = async (name: string) => {
  const button = screen.getByRole("button", { name });
  button.focus();
  fireEvent.click(button);
  await settled();
};
const focused = () =>
  document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent;

function Opening({ children }: { children: (close: () => void) => ReactNode }) {
  const [open, setOpen] = useState(false);
  return (
    <main>
      <button>before</button>
      <button onClick={() => setOpen(true)}>open</button>
      <button>between</button>
      {open && <section>{children(() => setOpen(false))}</section>}
    </main>
  );
}

it("knows what had the focus before it came", async () => {
  end();
  render(<Opening>{(close) => <button onClick={close}>close</button>}</Opening>);
  screen.getByText("open").focus();
  end = keepFocus(document);
  fireEvent.click(screen.getByText("open"));
  await press("close");
  expect(focused()).toBe("open");
});

it("goes back to what opened the part that closes, whatever had it in between", async () => {
  render(<Opening>{(close) => <button onClick={close}>close</button>}</Opening>);
  await press("open");
  screen.getByText("between").focus();
  await press("close");
  expect(focused()).toBe("open");
});

it("finds the button again that was drawn anew meanwhile", async () => {
  function Editing() {
    const [editing, setEditing] = useState(false);
    if (editing)
      return (
        <div>
          <textarea aria-label="text" autoFocus />
          <button onClick={() => setEditing(false)}>cancel</button>
        </div>
      );
    return (
      <p>
        <button aria-label="copy" />
        <button aria-label="edit" onClick={() => setEditing(true)} />
      </p>
    );
  }
  render(
    <article>
      <button>other</button>
      <Editing />
    </article>,
  );
  screen.getByText("other").focus();
  await press("edit");
  expect(focused()).toBe("text");
  await press("cancel");
  expect(focused()).toBe("edit");
});

it("goes to the neighbour of an entry of a list", async () => {
  function List() {
    const [names, setNames] = useState(["a", "b", "c"]);
    return (
      <>
        <button>outside</button>
        <ul>
          {names.map((name) => (
            <li key={name}>
              <button
                aria-label={`delete ${name}`}
                onClick={() => setNames(names.filter((one) => one !== name))}
              />
            </li>
          ))}
        </ul>
      </>
    );
  }
  render(<List />);
  screen.getByText("outside").focus();
  await press("delete b");
  expect(focused()).toBe("delete c");
  await press("delete c");
  expect(focused()).toBe("delete a");
  await press("delete a");
  expect(focused()).toBe("outside");
});

it("leaves a button that can no longer be pressed", async () => {
  function Once() {
    const [sent, setSent] = useState(false);
    return (
      <>
        <button>field</button>
        <button disabled={sent} onClick={() => setSent(true)}>
          send
        </button>
      </>
    );
  }
  render(<Once />);
  screen.getByText("field").focus();
  await press("send");
  expect(focused()).toBe("field");
});

it("stays in the scroller where rows come and go", async () => {
  const rows = (shown: boolean) => (
    <>
      <button>outside</button>
      <div tabIndex={0} aria-label="log">
        {shown && (
          <div data-passing="">
            <button>inside</button>
          </div>
        )}
      </div>
    </>
  );
  const { rerender } = render(rows(true));
  screen.getByText("outside").focus();
  screen.getByText("inside").focus();
  rerender(rows(false));
  await settled();
  expect(focused()).toBe("log");
});

it("leaves the focus where the person let it go", async () => {
  render(<Opening>{(close) => <button onClick={close}>close</button>}</Opening>);
  await press("open");
  screen.getByText("close").focus();
  screen.getByText("close").blur();
  await settled();
  fireEvent.click(screen.getByText("close"));
  await settled();
  expect(document.activeElement).toBe(document.body);
});

it("goes to what came in place of the part whose button had opened it", async () => {
  function List() {
    const [empty, setEmpty] = useState(false);
    const [asking, setAsking] = useState(false);
    return (
      <>
        <nav>
          <button>back</button>
        </nav>
        <section>
          {empty ? (
            <p>
              <button>new</button>
            </p>
          ) : (
            <div role="list">
              <div role="listitem">
                <button onClick={() => setAsking(true)}>remove</button>
              </div>
            </div>
          )}
        </section>
        {asking && (
          <form>
            <button
              type="button"
              onClick={() => {
                setEmpty(true);
                setAsking(false);
              }}
            >
              yes
            </button>
          </form>
        )}
      </>
    );
  }
  render(<List />);
  screen.getByText("back").focus();
  await press("remove");
  await press("yes");
  expect(focused()).toBe("new");
});

it("goes to the next page itself when the whole page is left, and waits for it", async () => {
  const page = (words: string) => (
    <div key={words}>
      <button>{words}</button>
      <main tabIndex={-1} aria-label={words}>
        <button>inside</button>
      </main>
    </div>
  );
  const { rerender } = render(page("one"));
  screen.getByText("inside").focus();
  rerender(<div>loading</div>);
  await settled();
  rerender(page("two"));
  await settled();
  expect(focused()).toBe("two");
});

it("follows a row that moves to another list, past rows of the same name", async () => {
  const row = (id: string) => (
    <li key={id} data-entry={id}>
      <button aria-label="actions">{id}</button>
    </li>
  );
  const lists = (pinned: string[], others: string[]) => (
    <nav>
      {pinned.length > 0 && <ul>{pinned.map(row)}</ul>}
      <ol>{others.map(row)}</ol>
    </nav>
  );
  const { rerender } = render(lists([], ["one", "two"]));
  screen.getByText("two").focus();
  rerender(lists(["two"], ["one"]));
  await settled();
  expect(document.activeElement?.textContent).toBe("two");
});
