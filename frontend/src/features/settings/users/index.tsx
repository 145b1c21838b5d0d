"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import {
  CirclePause,
  CirclePlay,
  Ellipsis,
  KeyRound,
  ShieldCheck,
  ShieldMinus,
  Trash2,
  UserPlus,
} from "lucide-react";
import { useState } from "react";
import { toast } from "@/ui/toast";
import { useAccount } from "@/features/auth";
import { useLocale, useT } from "@/i18n";
import { formatRelativeTime } from "@/lib/format";
import { keys } from "@/lib/keys";
import { Badge } from "@/ui/badge";
import { Button } from "@/ui/button";
import { ConfirmDialog } from "@/ui/dialog";
import {
  DropdownMenu,
  DropdownMenuContent,
  DropdownMenuItem,
  DropdownMenuSeparator,
  DropdownMenuTrigger,
} from "@/ui/dropdown-menu";
import { IconButton } from "@/ui/icon-button";
import { deleteUser, resetPassword, setRole, setSuspended, users, type Person } from "./api";
import { Group, Panel, Waiting } from "../parts";
import { SiteSettings } from "./site";
import { AddUserDialog, NewPasswordDialog, type Secret } from "./user-dialogs";

type Act = "reset" | "delete" | "demote" | "suspend";

export default function UsersSection() {
  const t = useT("users");
  const queries = useQueryClient();
  const me = useAccount().data;
  const { data, error, refetch } = useQuery({ queryKey: keys.users, queryFn: users });
  const [adding, setAdding] = useState(false);
  const [secret, setSecret] = useState<Secret | null>(null);
  const [asked, setAsked] = useState<{ act: Act; person: Person } | null>(null);
  const changed = () => queries.invalidateQueries({ queryKey: keys.users });

  const changeRole = async (person: Person) => {
    const role = person.system_role === "admin" ? "user" : "admin";
    await setRole(person.id, role);
    toast.success(t("roleChanged", { email: person.email, role }));
    if (person.id === me?.id) await queries.invalidateQueries({ queryKey: keys.me });
  };
  const acts: Record<Act, (person: Person) => Promise<void>> = {
    reset: async ({ id, email }) => setSecret({ email, password: (await resetPassword(id)).password }),
    delete: async ({ id }) => {
      await deleteUser(id);
      toast.success(t("deleted"));
    },
    demote: changeRole,
    suspend: async ({ id, email }) => {
      await setSuspended(id, true);
      toast.success(t("suspendedToast", { email }));
    },
  };
  const resume = async ({ id, email }: Person) => {
    await setSuspended(id, false);
    toast.success(t("resumedToast", { email }));
  };
  const run = async (work: Promise<void>) => {
    try {
      await work;
    } catch (problem) {
      toast.error((problem as Error).message);
      throw problem;
    }
    await changed();
  };
  const pickRole = (person: Person) =>
    person.id === me?.id
      ? setAsked({ act: "demote", person })
      : void run(changeRole(person)).catch(() => undefined);
  return (
    <div className="flex flex-col gap-7">
      <Group
        action={
          <Button size="sm" className="ml-auto" onClick={() => setAdding(true)}>
            <UserPlus aria-hidden />
            {t("invite")}
          </Button>
        }
      >
        {!data && <Waiting error={error} retry={refetch} />}
        {data && (
          <Panel role="list">
            {data.map((person) => (
              <PersonRow
                key={person.id}
                person={person}
                isMe={person.id === me?.id}
                onRole={() => pickRole(person)}
                onAct={(act) => setAsked({ act, person })}
                onResume={() => void run(resume(person)).catch(() => undefined)}
              />
            ))}
          </Panel>
        )}
        <AddUserDialog
          open={adding}
          onOpenChange={setAdding}
          onAdded={(made) => {
            setSecret(made);
            void changed();
          }}
        />
        <NewPasswordDialog secret={secret} onDone={() => setSecret(null)} />
        <ConfirmDialog
          open={asked !== null}
          onOpenChange={(open) => !open && setAsked(null)}
          title={t(`${asked?.act ?? "delete"}Title`, { email: asked?.person.email ?? "" })}
          text={t(`${asked?.act ?? "delete"}Text`)}
          confirm={asked ? t(LABELS[asked.act]) : ""}
          destructive
          onConfirm={() => asked && run(acts[asked.act](asked.person))}
        />
      </Group>
      <SiteSettings />
    </div>
  );
}

const LABELS = {
  reset: "resetPassword",
  delete: "delete",
  demote: "makeUser",
  suspend: "suspend",
} as const;

interface PersonRowProps {
  person: Person;
  isMe: boolean;
  onRole: () => void;
  onAct: (act: Act) => void;
  onResume: () => void;
}

function PersonRow({ person, isMe, onRole, onAct, onResume }: PersonRowProps) {
  const t = useT("users");
  const account = useT("account");
  const [locale] = useLocale();
  const isAdmin = person.system_role === "admin";
  const since = new Date(person.created_at).toLocaleDateString(locale, { dateStyle: "medium" });
  const isOut = !!person.suspended_at;
  return (
    <div role="listitem" className="flex items-center gap-3 px-4 py-3 sm:px-5">
      <span
        aria-hidden
        className="flex size-8 shrink-0 items-center justify-center rounded-full bg-primary-soft text-xs font-semibold text-primary uppercase"
      >
        {person.email.charAt(0)}
      </span>
      <div className="min-w-0 flex-1">
        <div className="flex flex-wrap items-center gap-x-2 gap-y-0.5">
          <span className="min-w-0 truncate font-medium">{person.email}</span>
          {isMe && <span className="text-xs text-muted-foreground">({t("you")})</span>}
          {isAdmin && <Badge>{account("roleAdmin")}</Badge>}
          {isOut && <Badge variant="warning">{t("suspended")}</Badge>}
        </div>
        <p className="text-xs leading-relaxed text-muted-foreground">
          {t("since", { date: since })}
          {person.last_seen_at &&
            ` · ${t("seen", { when: formatRelativeTime(person.last_seen_at, locale) })}`}
          {person.needs_setup && ` · ${t("pending")}`}
        </p>
      </div>
      <DropdownMenu>
        <DropdownMenuTrigger asChild>
          <IconButton label={t("more", { email: person.email })}>
            <Ellipsis aria-hidden />
          </IconButton>
        </DropdownMenuTrigger>
        <DropdownMenuContent align="end">
          <DropdownMenuItem onSelect={onRole}>
            {isAdmin ? <ShieldMinus aria-hidden /> : <ShieldCheck aria-hidden />}
            {t(isAdmin ? "makeUser" : "makeAdmin")}
          </DropdownMenuItem>
          {!isMe && (
            <>
              <DropdownMenuItem onSelect={() => onAct("reset")}>
                <KeyRound aria-hidden />
                {t("resetPassword")}
              </DropdownMenuItem>
              <DropdownMenuItem onSelect={() => (isOut ? onResume() : onAct("suspend"))}>
                {isOut ? <CirclePlay aria-hidden /> : <CirclePause aria-hidden />}
                {t(isOut ? "resume" : "suspend")}
              </DropdownMenuItem>
              <DropdownMenuSeparator />
              <DropdownMenuItem destructive onSelect={() => onAct("delete")}>
                <Trash2 aria-hidden />
                {t("delete")}
              </DropdownMenuItem>
            </>
          )}
        </DropdownMenuContent>
      </DropdownMenu>
    </div>
  );
}
