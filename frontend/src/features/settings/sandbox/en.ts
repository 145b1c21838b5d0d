const unprivileged =
  "On Ubuntu 23.10 and later, install an AppArmor profile with “userns,” for /usr/bin/bwrap, or set “sysctl kernel.apparmor_restrict_unprivileged_userns=0”. In Docker, add “--security-opt seccomp=deerflow-seccomp.json”, the profile shipped for it.";

export const sandbox = {
  isolation: "Isolation",
  level: {
    namespaces: "Linux namespaces",
    "namespaces-no-proc": "Linux namespaces, without a private /proc",
    landlock: "Landlock",
    container: "Container",
    remote: "Remote machine",
    none: "None",
  },
  levelText: {
    namespaces: "Commands see only their own files, processes and network, nothing else on this machine.",
    "namespaces-no-proc":
      "Commands see only their own files and network. This machine doesn’t allow a private process list.",
    landlock:
      "The kernel limits commands to their own files. Processes and network are shared with this machine.",
    container: "Each chat has its own container.",
    remote: "Commands run on another machine.",
    none: "Commands run as the user who started DeerFlow, on this machine, with access to that user's files.",
  },
  strong: "Strong",
  limited: "Limited",
  unprotected: "Unprotected",
  unavailable: "No shell",
  unavailableText:
    "This machine has no isolation that the configuration allows. The agent can work with files but can’t run commands.",
  why: "Why, and how to fix it",
  provider: "Provider",
  network: "Network",
  mode: {
    none: "Off: commands have no network.",
    allowlist: "Allowed hosts only.",
    internet: "The internet, but not this machine’s local network.",
    host: "Everything this machine can reach, including its own services.",
  },
  hosts: "Allowed hosts",
  packages: "Python packages",
  packagesReady: "Ready: pandas, matplotlib, DuckDB and more.",
  packagesWaiting: "Not ready yet. The server builds them when it starts, which takes about a minute.",
  packagesProblem: "Can’t be built here. The agent works without pandas, matplotlib and so on.",
  packagesOff: "Switched off.",
  limits: "Limits per sandbox",
  limit: {
    processes: "Processes",
    memory: "Memory",
    disk: "Disk",
    file: "Single file",
    timeout: "Single command",
    cpu: "CPU time per process",
  },
  unlimited: "no limit",
  enforced: "Enforced: {names}",
  and: ", ",
  enforcement: {
    memory: "memory",
    disk: "disk",
    file: "file size",
    processes: "processes",
  },
  unenforced: "Not enforced on this machine.",
  doctor: "<command>deerflow doctor</command> on the server tells you more.",
  /** Reasons for a missing shell or weak isolation, and fixes, by the code of the server. */
  problem: {
    "stage-denied": "This root may not make a mount namespace.",
    "bwrap-too-old": "This bubblewrap has no --bind-fd.",
    "disable-userns-unsupported": "Nested user namespaces can’t be switched off here.",
    "proc-sys-read-only":
      "/proc/sys is read-only here, so nested user namespaces can’t be switched off. The system-call filter refuses them.",
    "proc-masked": "This container masks parts of /proc, so the sandbox can’t have one of its own.",
    "data-unwritable": "The data directory can’t be written to, so no sandbox can be tried.",
    "userns-limit": "This machine allows no further user namespaces.",
    "uid-map-denied":
      "User namespaces are allowed but can’t be used: AppArmor or a container restricts them.",
    "userns-denied": "This machine or container refuses user namespaces.",
    "mount-denied": "This machine or container refuses mounts inside a user namespace.",
    "calls-denied": "A system-call filter of this container refuses a call that every sandbox needs.",
    "loopback-denied": "The loopback device of a new network namespace can’t be brought up.",
    "not-traversable": "The sandbox’s own user may not enter the data directory.",
    "uids-unmapped":
      "This root has no other user ID that a sandbox could run under: its user namespace maps only one.",
    "python-missing": "There is no Python inside the sandbox.",
    failed: "The sandbox couldn’t be started.",
    "bwrap-missing": "bubblewrap isn’t installed.",
    "not-linux": "Namespaces exist only on Linux.",
    "landlock-missing": "This kernel has no Landlock.",
    "landlock-too-old":
      "This kernel has Landlock {version}; {least} is needed to confine signals under your own user.",
    "host-bash-off": "Commands are off: this sandbox would run them on the host without isolation.",
    "no-bash": "There is no bash on PATH.",
    "engine-missing": "No container engine answers at {socket}.",
    "image-missing": "The container engine doesn’t have the image {image}.",
    "host-path-unknown":
      "The container engine’s machine doesn’t have DeerFlow’s directories in the same place.",
    "container-failed": "A container can’t be used as a sandbox.",
    "provisioner-missing": "The provisioner at {url} doesn’t answer.",
    "opensandbox-missing": "The OpenSandbox service at {url} doesn’t serve DeerFlow.",
  },
  fix: {
    "stage-denied": "Run the gateway as an ordinary user.",
    "bwrap-too-old": "Install bubblewrap 0.10 or newer.",
    "disable-userns-unsupported":
      "Install bubblewrap 0.8 or newer. Until then, the system-call filter refuses them.",
    "proc-sys-read-only":
      "Nothing needs to be done. “docker run --security-opt systempaths=unconfined” makes /proc/sys writable; a systemd unit must not set ProtectKernelTunables.",
    "proc-masked":
      "Isolation is good without it. “docker run --security-opt systempaths=unconfined” lifts the mask; docker-compose 1.29 can’t, and Kubernetes needs “procMount: Unmasked”.",
    "data-unwritable": "Set DEER_FLOW_HOME to a directory that you may write to and that has room.",
    "userns-limit": "Set “sysctl user.max_user_namespaces=10000”.",
    "uid-map-denied": unprivileged,
    "userns-denied": unprivileged,
    "mount-denied": unprivileged,
    "calls-denied": unprivileged,
    "loopback-denied": unprivileged,
    "not-traversable":
      "Set DEER_FLOW_HOME to a directory that others may enter (chmod o+x on each parent), or run the gateway as an ordinary user.",
    "uids-unmapped":
      "Run DeerFlow as an ordinary user, or map a range of IDs (/etc/subuid, “podman run --userns=auto”).",
    "python-missing": "Install python3 (3.9 or newer) from your distribution.",
    failed: "Run “deerflow doctor” and report what it says.",
    "bwrap-missing": "Install it: apt install bubblewrap (or dnf, pacman, apk).",
    "not-linux": "Use containers: docs/docker.md.",
    "landlock-missing": "Use Linux 6.12 or newer with lsm=landlock.",
    "landlock-too-old":
      "Use Linux 6.12 or newer, or run the gateway as root, which gives every chat a user of its own.",
    "host-bash-off":
      "Set sandbox.allow_host_bash to true in config.yaml if you trust everything the agent reads.",
    "no-bash": "Install bash, or use a container sandbox.",
    "engine-missing":
      "Start Docker or Podman, allow this user to use its socket, or name it: DOCKER_HOST=unix:///path.",
    "image-missing":
      "Build ours with “make docker-sandbox”, or pull yours with “docker pull”, and name it in sandbox.image.",
    "host-path-unknown":
      "In a container, set DEER_FLOW_HOST_BASE_DIR to where the machine keeps the data directory.",
    "container-failed":
      "The image needs bash and Python 3.9 or newer, and the engine a plain bind mount of the data directory.",
    "provisioner-missing": "Start it, or correct sandbox.provisioner_url.",
    "opensandbox-missing": "Start it, or correct sandbox.opensandbox_url and sandbox.opensandbox_key.",
  },
};

declare module "@/i18n" {
  interface Messages {
    sandbox: typeof sandbox;
  }
}
