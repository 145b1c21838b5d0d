"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { useEffect, useEffectEvent, useRef, useState, type FormEvent } from "react";
import { useT } from "@/i18n";
import { onSessionExpired } from "@/lib/http";
import { keys } from "@/lib/keys";
import { Button } from "@/ui/button";
import {
  Dialog,
  DialogContent,
  DialogDescription,
  DialogFooter,
  DialogHeader,
  DialogTitle,
} from "@/ui/dialog";
import { FormError } from "./form-error";
import { isUnauthenticated, loginPath } from "./guard";
import { PasswordField } from "./password-field";
import { useSubmission } from "./use-submission";
import { loadPage, me, signIn, type Account } from "./wire";

/** Over the page, which stays as it is: signs in again when the session has ended in the middle of work. */
export function SessionExpiredDialog() {
  const queries = useQueryClient();
  const account = useQuery({ queryKey: keys.me, queryFn: me, enabled: false }).data;
  const [first, setFirst] = useState<Account | null>(null);
  const [expired, setExpired] = useState(false);
  const checking = useRef(false);
  if (account && !first) setFirst(account);

  /** Ask for the current account; other tabs share the cookie. Fails without a session. */
  const ask = async () => {
    checking.current = true;
    try {
      await queries.fetchQuery({ queryKey: keys.me, queryFn: me, retry: false, staleTime: 0 });
      if (expired) void queries.invalidateQueries(); // what failed meanwhile is asked again
      setExpired(false);
    } finally {
      checking.current = false;
    }
  };
  const check = useEffectEvent((when: boolean) => {
    if (!when || !first || checking.current) return;
    ask().catch((problem: unknown) => isUnauthenticated(problem) && setExpired(true));
  });
  // A refusal may be the late answer to a request of before: only the account's own answer opens the dialog.
  useEffect(() => onSessionExpired(() => check(true)), []);
  useEffect(() => {
    const onVisible = () => check(expired && document.visibilityState === "visible");
    document.addEventListener("visibilitychange", onVisible);
    return () => document.removeEventListener("visibilitychange", onVisible);
  }, [expired]);

  if (!first) return null;
  if (account && account.id !== first.id) return <AccountChanged account={account} />;
  return expired ? <SignInAgain account={first} onSignedIn={ask} /> : null;
}

function SignInAgain({ account, onSignedIn }: { account: Account; onSignedIn: () => Promise<void> }) {
  const t = useT("auth");
  const [password, setPassword] = useState("");
  const form = useSubmission();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    event.stopPropagation();
    void form.submit(async () => {
      await signIn(account.email ?? "", password);
      await onSignedIn();
    });
  };
  const leave = () => loadPage(loginPath(window.location.pathname + window.location.search));
  return (
    <Dialog open>
      <DialogContent closable={false} onEscapeKeyDown={prevent} onInteractOutside={prevent}>
        <DialogHeader>
          <DialogTitle>{t("expiredTitle")}</DialogTitle>
          <DialogDescription>{t("expiredText")}</DialogDescription>
        </DialogHeader>
        <form onSubmit={submit} className="flex flex-col gap-4">
          <div className="truncate rounded-lg bg-muted px-3 py-2">{account.email}</div>
          <input type="hidden" name="username" autoComplete="username" value={account.email ?? ""} readOnly />
          <PasswordField value={password} onChange={setPassword} label={t("password")} autoFocus />
          <FormError message={form.message} />
          <DialogFooter className="sm:justify-between">
            <Button variant="ghost" className="text-muted-foreground" onClick={leave}>
              {t("otherAccount")}
            </Button>
            <Button type="submit" pending={form.pending} disabled={form.blocked}>
              {t("loginButton")}
            </Button>
          </DialogFooter>
        </form>
      </DialogContent>
    </Dialog>
  );
}

function AccountChanged({ account }: { account: Account }) {
  const t = useT("auth");
  return (
    <Dialog open>
      <DialogContent closable={false} onEscapeKeyDown={prevent} onInteractOutside={prevent}>
        <DialogHeader>
          <DialogTitle>{t("changedTitle")}</DialogTitle>
          <DialogDescription>{t("changedText", { email: account.email ?? account.id })}</DialogDescription>
        </DialogHeader>
        <DialogFooter>
          <Button onClick={() => loadPage("/chats")}>{t("reload")}</Button>
        </DialogFooter>
      </DialogContent>
    </Dialog>
  );
}

const prevent = (event: Event) => event.preventDefault();
