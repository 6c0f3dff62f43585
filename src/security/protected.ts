/** Names that other programs run or obey wherever they lie: never written by a tool, whether they exist yet or not. */

import { isPlain } from '../kit/plain.ts'

/** Whole names in a row, anywhere in the path; everything below them is meant too. */
const sequences: readonly string[] = [
  // settings, hooks and states that git runs programs from
  '.git',
  '.gitmodules',
  '.gitconfig',
  '.config/git',
  '.braidclaw',
  '.mcp.json',
  // shells and terminals
  '.bashrc',
  '.bash_profile',
  '.bash_login',
  '.bash_logout',
  '.bash_aliases',
  '.profile',
  '.zshrc',
  '.zshenv',
  '.zprofile',
  '.zlogin',
  '.zlogout',
  '.kshrc',
  '.mkshrc',
  '.cshrc',
  '.tcshrc',
  '.login',
  '.logout',
  '.inputrc',
  '.envrc',
  '.screenrc',
  '.tmux.conf',
  '.config/fish',
  '.config/tmux',
  '.config/powershell',
  // sessions and services
  '.xinitrc',
  '.xsession',
  '.xprofile',
  '.pam_environment',
  '.config/autostart',
  '.config/environment.d',
  '.config/systemd',
  '.local/share/systemd',
  'library/launchagents',
  'library/launchdaemons',
  // keys and credentials
  '.ssh',
  '.gnupg',
  '.netrc',
  // editors that run a folder's tasks or settings
  '.vscode',
  '.vscode-server',
  '.idea',
  '.vs',
  '.zed',
  '.fleet',
  '.devcontainer',
  '.devcontainer.json',
  '.exrc',
  '.vimrc',
  '.nvimrc',
  '.nvim.lua',
  '.lvimrc',
  '.dir-locals.el',
  '.dir-locals-2.el',
]

/** True for the name itself and all below. Takes a relative or an absolute path, already normalised. */
export function isProtectedName(path: string): boolean {
  const names = `/${unified(folded(path))}/`.replace(/\/+/g, '/')
  return sequences.some((sequence) => names.includes(`/${sequence}/`))
}

/** What Windows opens under another spelling: `.git:stream`, `a\\.git`, and the short names it gives to long ones. git looks for these too. */
function unified(path: string): string {
  if (!/[:\\~]/.test(path)) return path
  return path
    .split(/[/\\]/)
    .map((name) => longName(name.replace(/(?<=.):.*/, '').replace(/[. ]+$/, '')))
    .join('/')
}

function longName(name: string): string {
  if (name === 'git~1') return '.git'
  return /^(?:gitmod~[1-4]|gi7eba~[1-9])$/.test(name) ? '.gitmodules' : name
}

/**
 * File systems that ignore case or invisible characters open `.GIT` and `.g<ZWNJ>it` as `.git`: locks compare folded text.
 * Folding may refuse a harmless name, never let a locked one through; the workspace boundary compares exact text.
 */
export function folded(path: string): string {
  // Without these (anything but printable ASCII, a name that ends in a dot or a space) all that folding changes is the case.
  if (isUsual(path) || !/[^ -~]|[. ](?:\/|$)/.test(path)) return path.toLowerCase()
  return path.split('/').map(foldName).join('/')
}

/** The same said without a pattern, for a short path. */
function isUsual(path: string): boolean {
  return isPlain(path) && !path.endsWith('.') && !path.endsWith(' ') && !path.includes('./') && !path.includes(' /')
}

function foldName(name: string): string {
  const plain = name.normalize('NFKC').toLowerCase()
  const bare = plain.replace(/\p{Default_Ignorable_Code_Point}/gu, '').replaceAll('/', '')
  return /[^. ]/.test(bare) ? bare.replace(/[. ]+$/, '') : bare
}
