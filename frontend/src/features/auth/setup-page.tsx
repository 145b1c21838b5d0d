"use client";
import { useQueryClient } from "@tanstack/react-query";
import { useRouter } from "next/navigation";
import { useEffect, useId, useState, type FormEvent } from "react";
import { useT } from "@/i18n";
import { Button } from "@/ui/button";
import { Input } from "@/ui/input";
import { Label } from "@/ui/label";
import { AuthFrame } from "./auth-frame";
import { EmailField } from "./email-field";
import { FormError } from "./form-error";
import { isUnreachable } from "@/lib/http";
import { PasswordField } from "./password-field";
import { isAcceptable } from "./password-rules";
import { Unreachable } from "./unreachable";
import { useSetupStatus } from "./use-account";
import { useSubmission } from "./use-submission";
import { initialize } from "./wire";

/** Makes the first account. */
export function SetupPage() {
  const t = useT("auth");
  const router = useRouter();
  const setup = useSetupStatus();
  const done = setup.data && !setup.data.needs_setup;
  useEffect(() => {
    if (done) router.replace("/chats"); // whose guard knows the way
  }, [router, done]);

  if (isUnreachable(setup.error) && !setup.data)
    return <Unreachable trying={setup.isFetching} retry={() => setup.refetch()} />;
  return (
    <AuthFrame title={t("setupTitle")} text={t("setupText")} footer={null}>
      <SetupForm codeRequired={setup.data?.code_required ?? false} />
    </AuthFrame>
  );
}

function SetupForm({ codeRequired }: { codeRequired: boolean }) {
  const t = useT("auth");
  const router = useRouter();
  const queries = useQueryClient();
  const [code, setCode] = useState("");
  const [email, setEmail] = useState("");
  const [password, setPassword] = useState("");
  const form = useSubmission();
  const codeId = useId();
  const submit = (event: FormEvent) => {
    event.preventDefault();
    void form.submit(async () => {
      await initialize(email.trim(), password, codeRequired ? code.trim() : null);
      queries.clear();
      router.replace("/chats");
    });
  };
  return (
    <form onSubmit={submit} className="flex flex-col gap-4">
      {codeRequired && (
        <div className="flex flex-col gap-2">
          <Label htmlFor={codeId}>{t("code")}</Label>
          <Input
            id={codeId}
            name="one-time-code"
            autoComplete="one-time-code"
            autoCapitalize="off"
            spellCheck={false}
            required
            autoFocus
            value={code}
            onChange={(event) => setCode(event.target.value)}
            aria-describedby={`${codeId}-hint`}
            className="font-mono"
          />
          <p id={`${codeId}-hint`} className="text-xs leading-relaxed text-muted-foreground">
            {t("codeHint")}
          </p>
        </div>
      )}
      <EmailField value={email} onChange={setEmail} autoFocus={!codeRequired} />
      <PasswordField value={password} onChange={setPassword} label={t("password")} isNew />
      <FormError message={form.message} />
      <Button
        type="submit"
        size="lg"
        className="mt-1"
        pending={form.pending}
        disabled={form.blocked || !isAcceptable(password)}
      >
        {t("setupButton")}
      </Button>
    </form>
  );
}
