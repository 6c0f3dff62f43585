/** Lists the words of shell commands, grouped by what they do. */

/** The configuration may have a shorter list, because destructive patterns are blocked whatever it lists. */
export const defaultForbidden: readonly string[] =
  'shutdown reboot mkfs dd halt poweroff telinit shred wipefs fdisk sfdisk parted mkswap'.split(' ')

/** Shells whose `-c` text can be printed again and run by bash. */
export const posixShells = new Set('sh bash dash ash ksh mksh'.split(' '))
export const otherShells = new Set('zsh fish csh tcsh rbash rksh yash oksh pwsh powershell nu elvish xonsh'.split(' '))

/** They run code from an argument, a file or their standard input. A version suffix (`python3.12`) is cut off before the look-up. */
export const interpreters = new Set(
  (
    'python pypy perl raku ruby irb node nodejs deno php lua luajit tclsh wish expect Rscript R julia ghci runghc scala groovy jshell ' +
    'osascript guile racket sbcl erl elixir iex java ts-node tsx ed ex vi vim nvim emacs m4 dc gdb sqlite3 psql mysql octave'
  ).split(' '),
)

export const downloaders = new Set(
  'curl wget wget2 fetch aria2c http https httpie xh lynx links w3m elinks nc ncat netcat socat telnet ftp lftp tftp sftp scp rsync ssh gh axel'.split(
    ' ',
  ),
)

/** They run their arguments in too many ways to follow: always high risk, and every later word is searched for blocked commands. */
export const opaqueWrappers = new Set(
  (
    'strace ltrace valgrind perf unbuffer proxychains proxychains4 torsocks torify firejail bwrap chroot nsenter unshare fakeroot ' +
    'systemd-run runuser pkexec dbus-run-session xvfb-run rlwrap catchsegv numactl prlimit setpriv capsh setarch linux32 linux64 ' +
    'ssh docker podman nerdctl kubectl tmux screen at batch crontab parallel entr npx bunx pnpx uvx pipx direnv mise asdf nix nix-shell ' +
    'hyperfine just task rake tox nox gdb lldb rr daemonize start-stop-daemon sg newgrp machinectl lxc vagrant ansible ' +
    'su script gnome-terminal xterm konsole watchexec nodemon pnpm yarn cargo go bundle poetry uv pdm hatch rustup'
  ).split(' '),
)

/** The first word of these commands is their own sub-command: `docker rm`. */
export const hasSubcommands = new Set(
  'docker podman nerdctl kubectl lxc yarn pnpm cargo go bundle poetry uv pdm hatch nix mise asdf tmux just rustup'.split(' '),
)

/** Part of the shell's own grammar: no list needs to name them. */
export const freeBuiltins = new Set(
  (
    ': true false test [ cd pushd popd dirs export declare typeset local readonly unset set shift return exit break continue read wait let ' +
    'getopts type times mapfile readarray'
  ).split(' '),
)

/** Builtins that run text, change how the rest is read, or affect other processes. */
export const riskyBuiltins = new Set(
  'alias unalias bind builtin caller compgen complete compopt disown bg fg enable fc hash help history jobs kill logout shopt suspend ulimit umask popd'.split(
    ' ',
  ),
)

export const declarers = new Set('export declare typeset local readonly'.split(' '))

/** Environment variables that choose programs, libraries, start-up files or the way arguments are read. */
const refusedNames = new Set(
  (
    'PATH BASH_ENV ENV IFS PAGER MANPAGER EDITOR VISUAL BROWSER SHELL HOME CDPATH GLOBIGNORE SHELLOPTS BASHOPTS PROMPT_COMMAND PS0 PS1 PS2 PS4 ' +
    'EXECIGNORE FIGNORE HISTFILE INPUTRC TIMEFORMAT MAILPATH POSIXLY_CORRECT LESSOPEN LESSCLOSE LESS LESSKEY GREP_OPTIONS GCONV_PATH ' +
    'LOCPATH NLSPATH HOSTALIASES TERMINFO TERMINFO_DIRS TERMCAP TAR_OPTIONS TAPE GZIP XZ_OPT XZ_DEFAULTS ZSTD_CLEVEL BZIP2 RIPGREP_CONFIG_PATH ' +
    'MAKEFLAGS GNUMAKEFLAGS MFLAGS MAKEFILES MAKESHELL CLASSPATH JAVA_TOOL_OPTIONS _JAVA_OPTIONS JDK_JAVA_OPTIONS JAVA_HOME RUBYOPT RUBYLIB GEM_HOME ' +
    'GEM_PATH BUNDLE_GEMFILE AWKPATH AWKLIBPATH CURL_HOME WGETRC GNUPGHOME SUDO_ASKPASS SSLKEYLOGFILE PWD OLDPWD TMPDIR DIRSTACK FUNCNEST ' +
    'JQ_COLORS RSYNC_RSH CVS_RSH RUSTC_WRAPPER RUSTFLAGS CC CXX LD AR ASAN_OPTIONS MALLOC_CHECK_ DOCKER_HOST KUBECONFIG DISPLAY XAUTHORITY ' +
    'http_proxy https_proxy all_proxy HTTP_PROXY HTTPS_PROXY ALL_PROXY'
  ).split(' '),
)

export function isRefusedName(name: string): boolean {
  return (
    refusedNames.has(name) ||
    /^(LD_|DYLD_|GIT_|NODE_(?!ENV$)|PYTHON|PERL|BASH_|BUN_|npm_|NPM_CONFIG_|YARN_|PNPM_|XDG_|SSH_|GPG_|OPENSSL_|CARGO_|RUBY|LUA_|PHP|COMP_|BRAIDCLAW_)/.test(
      name,
    )
  )
}

/** Tells whether the value of this variable is a command line that some program runs. */
export function holdsCommand(name: string): boolean {
  return /^(GIT_(SSH|SSH_COMMAND|EDITOR|SEQUENCE_EDITOR|PAGER|ASKPASS|EXTERNAL_DIFF|PROXY_COMMAND)|EDITOR|VISUAL|PAGER|MANPAGER|BROWSER|PROMPT_COMMAND|PS[0124]|SSH_ASKPASS|SUDO_ASKPASS|RSYNC_RSH|CVS_RSH|LESSOPEN|LESSCLOSE)$/.test(
    name,
  )
}

/** A pager set to `cat` or to nothing runs no other program, and GIT_TERMINAL_PROMPT=0 only disables prompts. */
export function isHarmlessSetting(name: string, value: string): boolean {
  return (/^(GIT_)?PAGER$|^MANPAGER$/.test(name) && (value === 'cat' || value === '')) || (name === 'GIT_TERMINAL_PROMPT' && value === '0')
}

/** `python3.12` → `python`. */
export function withoutVersion(name: string): string {
  return name.replace(/(?<=[a-z])-?\d[\d.]*$/, '')
}

/** Developer tools that mostly read; tools/ defines what each may do beyond reading. */
export const defaultAllow: readonly string[] = (
  'ls cat tac rev nl head tail wc grep egrep fgrep rg fd find sort uniq comm join paste cut tr fold fmt expand unexpand column shuf ' +
  'sed awk gawk mawk diff cmp file stat du df pwd echo printf date cal git tree jq basename dirname realpath readlink which ' +
  'expr test [ true false mkdir touch cp mv tee seq sleep nproc uname whoami id arch uptime md5sum sha1sum sha224sum sha256sum sha384sum ' +
  'sha512sum b2sum cksum sum base64 base32 xxd od hexdump strings zcat tar npm bun make'
).split(' ')
