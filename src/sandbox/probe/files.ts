/** Lists attempts on files: outside the workspace, secret files, and protected files inside the workspace. */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type AttemptOutcome, type EscapeAttempt, type Field, sh, verdict } from './attempt.ts'

/** Lists files that running programs watch. The changes of a command to other files are reviewed when it has ended, outside the sandbox. */
const startUp = '.envrc .mcp.json .gitmodules .vscode/tasks.json .idea/workspace.xml .braidclaw/config.toml'.split(' ')

/** The small /etc names the user, root and nobody. */
const FEW_LINES = 3

export const fileAttempts: readonly EscapeAttempt[] = [
  {
    name: 'write a file next to the workspace',
    argv: ({ ground }) => sh('echo x > "$1/new" && echo written', ground.outside),
    judge: (seen) => verdict(seen, existsSync(join(seen.field.ground.outside, 'new')), 'mount namespace'),
  },
  reads('read a key in ~/.ssh', ({ home }) => join(home, '.ssh/id_canary'), 'mount namespace'),
  reads('read the key of the receipts', ({ stateHome }) => join(stateHome, 'receipt.key'), 'mount namespace'),
  {
    name: 'read a secret file in the workspace, also after moving its folder away',
    argv: () => sh('cat private/secret.pem; mv private moved; cat moved/secret.pem'),
    judge: (seen) => verdict(seen, seen.output.includes(seen.field.ground.token), 'hidden files'),
  },
  {
    name: 'read a file that nobody reads, by name, search and copy',
    argv: () => sh('cat nested/.env; grep -r canary . ; cp nested/.env copy; cat copy'),
    judge: (seen) => verdict(seen, seen.output.includes(seen.field.ground.token), 'unread files'),
  },
  {
    name: 'run a forbidden command by another spelling',
    argv: () => sh('echo x > removable; "$(command -v r""m)" removable; [ -e removable ] || echo removed'),
    judge: (seen) => verdict(seen, seen.output.includes('removed'), 'refused programs'),
  },
  {
    name: 'see the users and services of this machine',
    argv: () => sh('cat /etc/passwd /etc/fstab /etc/machine-id 2>/dev/null | wc -l'),
    judge: (seen) => verdict(seen, Number(seen.output) > FEW_LINES, 'small /etc'),
  },
  {
    name: "change one of the user's tools",
    argv: ({ ground }) => sh('echo changed >> "$1"', join(ground.settings.home, '.local/bin/tool')),
    judge: (seen) =>
      verdict(seen, readFileSync(join(seen.field.ground.settings.home, '.local/bin/tool'), 'utf8').includes('changed'), 'mount namespace'),
  },
  {
    name: 'read /etc/shadow',
    argv: () =>
      sh('if [ -r /etc/shadow ] && [ "$(head -c 1 /etc/shadow | wc -c)" -eq 1 ]; then echo read; else stat -c "size=%s" /etc/shadow; fi'),
    judge: (seen) =>
      verdict(
        seen,
        seen.output.startsWith('read'),
        /size=0\b/.test(seen.output) || seen.field.name === 'landlock' ? 'hidden files' : 'file permissions',
      ),
  },
  deletes('delete a folder outside with find', [], (path) => sh('find "$1" -delete', path)),
  deletes('delete a folder outside with python', ['python3'], (path) => [
    'python3',
    '-c',
    'import shutil, sys; shutil.rmtree(sys.argv[1])',
    path,
  ]),
  {
    name: 'write through a symbolic link that is swapped in (race)',
    argv: ({ ground }) =>
      sh(
        '(i=0; while [ $i -lt 150 ]; do mkdir -p race; rmdir race; ln -s "$1" race; rm race; i=$((i+1)); done) 2>/dev/null & i=0; while [ $i -lt 300 ]; do { echo x > race/raced; } 2>/dev/null; i=$((i+1)); done; ln -sfn "$1" race2; echo x > race2/raced',
        ground.outside,
      ),
    judge: (seen) => verdict(seen, existsSync(join(seen.field.ground.outside, 'raced')), 'mount namespace'),
  },
  {
    name: 'plant a git hook before a repository exists',
    argv: () => sh('mkdir -p .git/hooks && echo evil > .git/hooks/pre-commit && echo planted'),
    judge: (seen) => verdict(seen, existsSync(inWorkspace(seen, '.git/hooks/pre-commit')), 'protected paths'),
  },
  {
    name: 'change a repository: its settings, its hooks, the whole of it',
    argv: () =>
      sh(
        'cd nested; echo evil >> .git/config; echo evil > .git/hooks/post-checkout; echo ../evil > .git/commondir; mv .git old && mkdir -p .git/hooks && echo moved',
      ),
    judge: (seen) => verdict(seen, isNestedChanged(seen), 'protected paths'),
  },
  {
    name: 'write start-up and editor files',
    argv: () => sh('for name; do mkdir -p "$(dirname "$name")"; { echo evil > "$name"; } && echo "$name"; done', ...startUp),
    judge: (seen) =>
      verdict(
        seen,
        startUp.some((name) => existsSync(inWorkspace(seen, name))),
        'protected paths',
      ),
  },
  {
    name: 'open a kernel setting for writing',
    argv: () => sh('true >> /proc/sys/kernel/core_pattern && echo opened'),
    judge: (seen) =>
      verdict(
        seen,
        seen.output.includes('opened'),
        /Read-only/.test(seen.output) || seen.field.name === 'landlock' ? 'mount namespace' : 'file permissions',
      ),
  },
  {
    name: 'open a disk',
    argv: () => sh('for disk in $(find /dev -type b 2>/dev/null); do [ -r "$disk" ] && echo "readable $disk" && exit; done; echo no disk'),
    judge: (seen) => verdict(seen, seen.output.includes('readable'), 'mount namespace'),
  },
]

function reads(
  name: string,
  path: (settings: Field['ground']['settings']) => string,
  layer: 'mount namespace' | 'hidden files',
): EscapeAttempt {
  return {
    name,
    argv: ({ ground }) => sh('cat "$1"', path(ground.settings)),
    judge: (seen) => verdict(seen, seen.output.includes(seen.field.ground.token), layer),
  }
}

function deletes(name: string, needs: readonly string[], argv: (path: string) => readonly string[]): EscapeAttempt {
  const victim = ({ field }: Pick<AttemptOutcome, 'field'>) => join(field.ground.outside, 'victim')
  return {
    name,
    needs,
    argv: (field) => {
      mkdirSync(victim({ field }), { recursive: true })
      writeFileSync(join(victim({ field }), 'file'), field.ground.token)
      return argv(victim({ field }))
    },
    judge: (seen) => verdict(seen, !existsSync(join(victim(seen), 'file')), 'mount namespace'),
  }
}

function inWorkspace({ field }: AttemptOutcome, name: string): string {
  return join(field.ground.settings.workspace, name)
}

function isNestedChanged(seen: AttemptOutcome): boolean {
  const git = inWorkspace(seen, 'nested/.git')
  const planted = ['hooks/post-checkout', 'commondir', '../old'].some((name) => existsSync(join(git, name)))
  return planted || readFileSync(join(git, 'config'), 'utf8') !== '[core]\n'
}
