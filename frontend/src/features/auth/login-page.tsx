"use client";
import { useQueryClient } from "@tanstack/react-query";
import { useRouter, useSearchParams } from "next/navigation";
import { useEffect, useState, type FormEvent } from "react";
import { useT } from "@/i18n";
import { ApiError } from "@/lib/http";
import { safeNext } from "@/lib/route";
import { Button } from "@/ui/button";
import { AuthFrame } from "./auth-frame";
import { EmailField } from "./email-field";
import { FormError } from "./form-error";
import { isUnreachable } from "@/lib/http";
import { PasswordField } from "./password-field";
import { isAcceptable } from "./password-rules";
import { Unreachable } from "./unreachable";
import { useAccount, useSetupStatus } from "./use-account";
import { useSubmission } from "./use-submission";
import { changePassword, register, signIn } from "./wire";

export function LoginPage() {
  const t = useT("auth");
  const router = useRouter();
  const next = safeNext(useSearchParams().get("next"));
  const setup = useSetupStatus();
  const account = useAccount();
  const [isNew, setIsNew] = useState(false);
  const [handedOver, setHandedOver] = useState<string | null>(null);
  const elsewhere = setup.data?.needs_setup ? "/setup" : account.data && handedOver === null ? next : null;
  useEffect(() => {
    if (elsewhere) router.replace(elsewhere);
  }, [router, elsewhere]);

  if (isUnreachable(setup.error) && !setup.data)
    return <Unreachable trying={setup.isFetching} retry={() => setup.refetch()} />;
  if (handedOver !== null)
    return (
      <AuthFrame title={t("chooseTitle")} text={t("chooseText")} footer={null}>
        <ChoosePasswordForm current={handedOver} next={next} />
      </AuthFrame>
    );
  const kind = isNew ? "register" : "login";
  const link = (text: React.ReactNode) => (
    <Button
      variant="link"
      className="h-auto p-0 text-[13px] pointer-coarse:h-auto"
      onClick={() => setIsNew(!isNew)}
    >
      {text}
    </Button>
  );
  return (
    <AuthFrame
      title={t(`${kind}Title`)}
      text={t(`${kind}Text`)}
      footer={
        setup.data &&
        (setup.data.registration ? t.rich(isNew ? "toLogin" : "toRegister", { link }) : t("noAccount"))
      }
    >
      <SignInForm key={kind} isNew={isNew} next={next} onHandedOver={setHandedOver} />
    </AuthFrame>
  );
}

interface SignInFormProps {
  isNew: boolean;
  next: string;
  /** Gets a password that someone else has set. */
  onHandedOver: (password: string) => void;
}

function SignInForm({ isNew, next, onHandedOver }: SignInFormProps) {
  const t = useT("auth");
  const router = useRouter();
  const queries = useQueryClient();
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const form = useSubmission();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void form.submit(async () => {
      const session = isNew ? await register(email.trim(), password) : await signIn(email.trim(), password);
      queries.clear(); // of the previous account
      if (session.needs_setup) onHandedOver(password);
      else router.replace(next);
    });
  };
  const code = form.error instanceof ApiError ? form.error.code : null;
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <EmailField
        value={email}
        onChange={setEmail}
        autoFocus
        invalid={code === "invalid_email" || code === "email_already_exists"}
      />
      <PasswordField
        value={password}
        onChange={setPassword}
        label={t("password")}
        isNew={isNew}
        invalid={code === "invalid_credentials" || code === "weak_password"}
      />
      <FormError message={form.message} />
      <Button
        type="submit"
        size="lg"
        className="mt-1"
        pending={form.pending}
        disabled={form.blocked || (isNew && !isAcceptable(password))}
      >
        {t(isNew ? "registerButton" : "loginButton")}
      </Button>
    </form>
  );
}

/** The first thing a new member does: a password in place of the one that was handed over. */
function ChoosePasswordForm({ current, next }: { current: string; next: string }) {
  const t = useT("auth");
  const router = useRouter();
  const queries = useQueryClient();
  const [password, setPassword] = useState("");
  const form = useSubmission();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void form.submit(async () => {
      await changePassword(current, password, true);
      queries.clear();
      router.replace(next);
    });
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      <PasswordField value={password} onChange={setPassword} label={t("newPassword")} isNew autoFocus />
      <FormError message={form.message} />
      <Button
        type="submit"
        size="lg"
        className="mt-1"
        pending={form.pending}
        disabled={form.blocked || !isAcceptable(password)}
      >
        {t("chooseButton")}
      </Button>
    </form>
  );
}
