import type * as en from "../en/sandbox";

const unprivileged =
  "在 Ubuntu 23.10 及更新版本上，请为 /usr/bin/bwrap 安装包含“userns,”的 AppArmor 配置，或设置“sysctl kernel.apparmor_restrict_unprivileged_userns=0”。在 Docker 中请添加“--security-opt seccomp=deerflow-seccomp.json”，即随附的配置文件。";

export const sandbox: typeof en.sandbox = {
  problem: {
    "stage-denied": "此 root 用户无权创建挂载命名空间。",
    "bwrap-too-old": "这个 bubblewrap 不支持 --bind-fd。",
    "disable-userns-unsupported": "这里无法禁用嵌套的用户命名空间。",
    "proc-sys-read-only":
      "这里的 /proc/sys 是只读的，因此无法禁用嵌套的用户命名空间，但系统调用过滤器会阻止它们。",
    "proc-masked": "此容器屏蔽了部分 /proc，因此沙箱不能拥有独立的 /proc。",
    "data-unwritable": "数据目录不可写，因此无法试运行沙箱。",
    "userns-limit": "这台机器不允许创建更多用户命名空间。",
    "uid-map-denied": "允许创建用户命名空间，但 AppArmor 或容器限制了它们的使用。",
    "userns-denied": "这台机器或容器不允许用户命名空间。",
    "mount-denied": "这台机器或容器不允许在用户命名空间中挂载。",
    "calls-denied": "此容器的系统调用过滤器阻止了沙箱必需的调用。",
    "loopback-denied": "无法启用新网络命名空间的回环设备。",
    "not-traversable": "沙箱的专用用户无法进入数据目录。",
    "uids-unmapped": "此 root 没有可供沙箱使用的其他用户 ID：它的用户命名空间只映射了一个。",
    "python-missing": "沙箱内没有 Python。",
    failed: "无法启动沙箱。",
    "bwrap-missing": "没有安装 bubblewrap。",
    "not-linux": "只有 Linux 才有命名空间。",
    "landlock-missing": "此内核没有 Landlock。",
    "landlock-too-old": "此内核的 Landlock 版本为 {version}；要在你自己的用户下限制信号，需要版本 {least}。",
    "host-bash-off": "命令已关闭：此沙箱会在主机上直接运行命令，没有隔离。",
    "no-bash": "PATH 中没有 bash。",
    "engine-missing": "{socket} 上没有容器引擎响应。",
    "image-missing": "容器引擎中没有镜像 {image}。",
    "host-path-unknown": "容器引擎所在的机器上，DeerFlow 的目录不在相同位置。",
    "container-failed": "容器无法用作沙箱。",
    "provisioner-missing": "位于 {url} 的 provisioner 没有响应。",
    "opensandbox-missing": "位于 {url} 的 OpenSandbox 服务无法为 DeerFlow 提供沙箱。",
  },
  fix: {
    "stage-denied": "请以普通用户身份运行网关。",
    "bwrap-too-old": "请安装 bubblewrap 0.10 或更新版本。",
    "disable-userns-unsupported": "请安装 bubblewrap 0.8 或更新版本。在此之前由系统调用过滤器阻止它们。",
    "proc-sys-read-only":
      "无需处理。“docker run --security-opt systempaths=unconfined”可使 /proc/sys 可写；systemd 单元不能设置 ProtectKernelTunables。",
    "proc-masked":
      "没有它隔离效果依然良好。“docker run --security-opt systempaths=unconfined”可取消屏蔽；docker-compose 1.29 做不到，Kubernetes 需要“procMount: Unmasked”。",
    "data-unwritable": "请将 DEER_FLOW_HOME 设为可写且有剩余空间的目录。",
    "userns-limit": "请设置“sysctl user.max_user_namespaces=10000”。",
    "uid-map-denied": unprivileged,
    "userns-denied": unprivileged,
    "mount-denied": unprivileged,
    "calls-denied": unprivileged,
    "loopback-denied": unprivileged,
    "not-traversable":
      "请将 DEER_FLOW_HOME 设为其他用户可以进入的目录（对每个上级目录执行 chmod o+x），或以普通用户身份运行网关。",
    "uids-unmapped":
      "请以普通用户身份运行 DeerFlow，或映射一段 ID（/etc/subuid、“podman run --userns=auto”）。",
    "python-missing": "请通过系统的软件包管理器安装 python3（3.9 或更新版本）。",
    failed: "请运行“deerflow doctor”并反馈其输出。",
    "bwrap-missing": "请安装：apt install bubblewrap（或 dnf、pacman、apk）。",
    "not-linux": "请使用容器：docs/docker.md。",
    "landlock-missing": "请使用 Linux 6.12 或更新版本，并设置 lsm=landlock。",
    "landlock-too-old": "请使用 Linux 6.12 或更新版本，或以 root 身份运行网关，这样每个对话都有独立的用户。",
    "host-bash-off":
      "如果你信任智能体读取的所有内容，请在 config.yaml 中将 sandbox.allow_host_bash 设为 true。",
    "no-bash": "请安装 bash，或使用容器沙箱。",
    "engine-missing": "请启动 Docker 或 Podman，允许此用户访问其套接字，或指定它：DOCKER_HOST=unix:///path。",
    "image-missing":
      "请用“make docker-sandbox”构建我们的镜像，或用“docker pull”拉取你的镜像，并在 sandbox.image 中指定。",
    "host-path-unknown": "在容器中运行时，请将 DEER_FLOW_HOST_BASE_DIR 设为主机存放数据目录的路径。",
    "container-failed": "镜像需要 bash 和 Python 3.9 或更新版本，引擎需要以普通绑定挂载方式提供数据目录。",
    "provisioner-missing": "请启动它，或修正 sandbox.provisioner_url。",
    "opensandbox-missing": "请启动它，或修正 sandbox.opensandbox_url 和 sandbox.opensandbox_key。",
  },
};
