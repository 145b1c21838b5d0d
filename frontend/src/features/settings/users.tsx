"use client";
import { useQuery, useQueryClient } from "@tanstack/react-query";
import { Ellipsis, KeyRound, ShieldCheck, ShieldMinus, Trash2, UserPlus } from "lucide-react";
import { useState } from "react";
import { toast } from "@/ui/toast";
import { useAccount } from "@/features/auth";
import { useLocale, useT } from "@/i18n";
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
import { deleteUser, resetPassword, setRole, users, type Person } from "./api";
import { Group, Panel, Waiting } from "./parts";
import { AddUserDialog, NewPasswordDialog, type Secret } from "./user-dialogs";

type Act = "reset" | "delete" | "demote";

export default function UsersSection() {
  const t = useT("settings.users");
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
  );
}

const LABELS = { reset: "resetPassword", delete: "delete", demote: "makeUser" } as const;

interface PersonRowProps {
  person: Person;
  isMe: boolean;
  onRole: () => void;
  onAct: (act: Act) => void;
}

function PersonRow({ person, isMe, onRole, onAct }: PersonRowProps) {
  const t = useT("settings.users");
  const account = useT("settings.account");
  const [locale] = useLocale();
  const isAdmin = person.system_role === "admin";
  const since = new Date(person.created_at).toLocaleDateString(locale, { dateStyle: "medium" });
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
        </div>
        <p className="text-xs leading-relaxed text-muted-foreground">
          {t("since", { date: since })}
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
