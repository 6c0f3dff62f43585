/** Defines "always allow" rules: each covers one resolved executable and sub-command, never a program that runs its arguments. */

import type { CommandVerdict } from './command/verdict.ts'

/** `subcommand` is empty for tools that have no sub-commands. */
export type AlwaysRule = { readonly executable: string; readonly subcommand: string }

/** @returns one line under which a rule is stored, listed and revoked; JSON keeps the two parts apart and excludes newlines */
export function alwaysKey({ executable, subcommand }: AlwaysRule): string {
  return JSON.stringify(subcommand === '' ? [executable] : [executable, subcommand])
}

/** Wrappers, shells and interpreters: a rule for one of them would allow every command. */
const runsOthers = new Set(
  `sh bash dash ash zsh fish ksh mksh csh tcsh pwsh rbash env command exec eval builtin nice nohup timeout stdbuf setsid ionice chrt taskset
  sudo doas su runuser pkexec xargs parallel find fd busybox toybox flock script watch time chroot unshare nsenter setarch ssh strace ltrace
  gdb systemd-run npx bunx uvx pipx node nodejs bun deno python pypy perl ruby irb php lua luajit tclsh wish expect awk gawk mawk nawk sed ed ex
  vi vim nvim emacs Rscript R julia ghci scala groovy jshell osascript guile racket sbcl erl elixir iex java make gmake ninja just task rake
  docker podman kubectl tmux screen entr direnv`.split(/\s+/),
)

/** Tools whose first word decides what they do. An option before that word hides it, so such a call gets no rule. */
const hasSubcommand = new Set(
  'git npm pnpm yarn cargo go pip pip3 apt apt-get dpkg systemctl gh brew gem bundle dotnet mvn gradle rustup hg svn jj'.split(' '),
)

/** Sub-commands that run whatever the next word names. */
const opensEnded = new Set([
  'run',
  'exec',
  'x',
  'dlx',
  'explore',
  'create',
  'init',
  'rebase',
  'bisect',
  'config',
  'filter-branch',
  'submodule',
  'foreach',
  'alias',
  'api',
  'generate',
  'tool',
  'start',
  'test',
])

/** @returns the rule that a lasting approval of this command would create; undefined when the command can only be approved once */
export function alwaysRuleFor(verdict: CommandVerdict): AlwaysRule | undefined {
  const { plan } = verdict
  if (verdict.verdict !== 'run' || verdict.risk !== 'medium' || plan?.kind !== 'argv' || verdict.executables.length !== 1) return
  const name = plan.executable.split('/').at(-1) ?? ''
  if (!plan.executable.startsWith('/') || runsOthers.has(name) || /^(python|perl|ruby|lua|php|node|pypy|tclsh)[\d.-]*$/.test(name)) return
  if (!hasSubcommand.has(name)) return { executable: plan.executable, subcommand: '' }
  const subcommand = plan.argv[1] ?? ''
  if (!/^[a-z][a-z\d-]*$/.test(subcommand) || opensEnded.has(subcommand)) return
  return { executable: plan.executable, subcommand }
}

/** @returns what an "always" for these requests covers: each host, to read from it or to send to it */
export function hostsCovered(urls: readonly { readonly url: string; readonly method: string }[]): readonly string[] {
  return [
    ...new Set(urls.map(({ url, method }) => `${/^(GET|HEAD|OPTIONS)$/.test(method) ? 'read from' : 'send to'} ${new URL(url).hostname}`)),
  ].sort()
}
