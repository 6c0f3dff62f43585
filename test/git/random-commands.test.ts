/**
 * Random hostile commands on private views, judged and decided as the host does it. Afterwards the workspace is exactly as the verdict says,
 * nothing outside has changed, and the git of another user runs nothing there. Run more with FUZZ_COMMANDS=3000; FUZZ_SEED chooses others.
 */

import { expect, test } from 'bun:test'
import { cpSync, lstatSync, mkdirSync, readdirSync, readFileSync, readlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { EntryState } from '../../src/runtime/changes.ts'
import { quoteText } from '../../src/security/command/syntax/quote.ts'
import { dice } from '../support/dice.ts'
import { needs } from '../support/needs.ts'
import { repetitions } from '../support/tier.ts'
import { type Ground, ground } from './hostile.ts'

const { FUZZ_COMMANDS = repetitions({ fast: 5, deep: 12 }), FUZZ_SEED = 1 } = process.env
const commands = Number(FUZZ_COMMANDS)

const places = (
  'a.txt src/b.txt new/c.txt .git .git/config .git/hooks/post-commit .git/HEAD .git/index .git/refs/heads/x .git/info/attributes .git/commondir .GIT/config ' +
  'sub sub/.git sub/.git/config sub/.git/hooks/post-checkout sub/.git/objects/info/alternates lib lib/HEAD lib/config lib/objects/k lib/refs/k lib/commondir ' +
  'tools/hooks tools/hooks/pre-commit tools/monitor shared .gitattributes .gitmodules .vscode/tasks.json .envrc .npmrc Makefile package.json ' +
  'deep/a/b/.git/config link dir dir/x $HOME/.bashrc $HOME/x ../escape ../../escape OUT/kept OUT/escape /etc/passwd /usr/bin/escape /tmp/x'
).split(' ')

const verbs: readonly string[] = [
  'echo evil > A',
  "printf '[core]\\n\\tbare = false\\n\\tfsmonitor = touch CANARY\\n' > A",
  "printf '#!/bin/sh\\ntouch CANARY\\n' > A; chmod +x A",
  "echo 'gitdir: ../lib' > A",
  'mkdir -p A',
  'ln -s B A',
  'ln -sfn B A',
  'ln B A',
  'rm -rf A',
  'mv B A',
  'cp -r B A',
  'chmod 4755 A',
  'chmod 000 A',
  'mkfifo A',
  'touch A',
  'git init -q A',
  'git config core.fsmonitor "touch CANARY"',
  'git -C A config core.hooksPath ../tools/hooks',
  'git add -A; git commit -qm x',
  'git checkout -q -b x; git rebase -q main',
  'git worktree add -q A',
  'git submodule --quiet add ./lib A',
  'git clone -q --no-hardlinks . A',
  'git stash -q',
  'tar cf /tmp/t.tar A; tar xf /tmp/t.tar -C B',
  '(sleep 0.05; echo late > A) &',
  'setsid sh -c "sleep 0.05; echo late > A" &',
  'unshare -rm true; mount -t tmpfs none A',
  'cd A',
  'dd if=/dev/zero of=A bs=1k count=1 2>&1',
  'truncate -s 100M A',
  'setfattr -n user.overlay.opaque -v y A',
  'mknod A c 1 3',
]

const make = (roll: (end: number) => number, at: Ground) => {
  const pick = <T>(all: readonly T[]): T => all[roll(all.length)] as T
  const piece = () =>
    pick(verbs)
      .replace(/\b[AB]\b/g, () => pick(places).replace('OUT', join(at.root, 'out')))
      .replaceAll('CANARY', at.canary)
  return Array.from({ length: 1 + roll(5) }, piece).join('\n')
}

/** Kind, permissions, and content or target of everything below a folder. */
function picture(folder: string, below = ''): ReadonlyMap<string, string> {
  const all = new Map<string, string>()
  for (const name of readdirSync(join(folder, below)).toSorted()) {
    const path = below === '' ? name : `${below}/${name}`
    const stat = lstatSync(join(folder, path))
    const rest = stat.isFile() ? readFileSync(join(folder, path), 'base64') : stat.isSymbolicLink() ? readlinkSync(join(folder, path)) : ''
    all.set(path, `${kindOf(stat)} ${(stat.mode & 0o7777).toString(8)} ${rest}`)
    if (stat.isDirectory()) for (const [inner, state] of picture(folder, path)) all.set(inner, state)
  }
  return all
}

function kindOf(stat: ReturnType<typeof lstatSync>): EntryState['kind'] {
  if (stat?.isFile()) return 'file'
  return stat?.isDirectory() ? 'folder' : stat?.isSymbolicLink() ? 'link' : 'other'
}

/** Whether the path is now what the change says; the content was compared by whoever made the picture. */
function isAs(state: EntryState | undefined, now: string | undefined): boolean {
  if (state === undefined || state.kind === 'other') return now === undefined || state?.kind === 'other'
  const [kind, mode] = now?.split(' ') ?? []
  return kind === state.kind && (kind === 'link' || Number.parseInt(mode ?? '', 8) === (state.mode & 0o777))
}

const outsideOf = (at: Ground) => JSON.stringify([...picture(join(at.root, 'out')), ...picture(join(at.root, 'other'))])

async function oneCommand(at: Ground, seed: number, template: string): Promise<string> {
  const roll = dice(seed)
  Bun.spawnSync(['sh', '-c', `chmod -R u+rwx "$1"; find "$1" -mindepth 1 -delete; cp -a "$2/." "$1"`, 'sh', at.workspace, template])
  const script = make(roll, at)
  const [before, outside] = [picture(at.workspace), outsideOf(at)]
  const [level, approved] = [roll(2) === 0 ? ('auto' as const) : ('full' as const), roll(3) === 0]
  // A command may wait for ever: git reads a pipe that the command itself put in the place of a file.
  const done = await at.attempt(`timeout -s KILL 10 sh -c ${quoteText(script)}`, { level, approved })
  const told = { seed, script, level, approved, verdict: done.verdict, reason: done.reason }
  // A person says yes to every question.
  if (done.verdict === 'deny') done.drop()
  else expect({ ...told, applied: await done.apply() }).toMatchObject({ applied: { ok: true } })
  const after = picture(at.workspace)
  const changed = new Map(done.verdict === 'deny' ? [] : done.changes.map((change) => [change.path, change]))
  const wrong = [...new Set([...before.keys(), ...after.keys()])].filter((path) => {
    const change = changed.get(path)
    return change === undefined ? before.get(path) !== after.get(path) : !isAs(change.after, after.get(path))
  })
  expect({ ...told, wrong, outside: outsideOf(at) }).toEqual({ ...told, wrong: [], outside })
  const rights = [...after].filter(([, state]) => /^(?:other|file [4-7]\d{3}) /.test(state))
  expect({ ...told, rights }).toEqual({ ...told, rights: [] })
  at.handOver()
  const look =
    'for git in $(find . -name .git) ./lib; do (cd "$(dirname "$git")" && git status; cd lib; git status; git commit --allow-empty -qm x); done'
  at.outside(`${look}; git add -A; git stash; git checkout -q main`)
  expect({ ...told, hasRun: at.hasRun() }).toEqual({ ...told, hasRun: false })
  return done.verdict
}

test.if(needs('bwrap') && needs('git'))(
  `of ${commands} random commands none changes or runs anything outside, and each changes what its verdict says`,
  async () => {
    using at = await ground()
    at.own(
      'git init -q -b main . && mkdir src tools dir lib && echo 1 > a.txt && echo 2 > src/b.txt && echo 3 > dir/x && echo x > tools/monitor && ln -s a.txt link && git add -A && git commit -qm one && git init -q sub',
    )
    writeFileSync(join(at.root, 'out/kept'), 'outside\n')
    const template = join(at.root, 'template')
    mkdirSync(template)
    cpSync(at.workspace, template, { recursive: true, verbatimSymlinks: true })
    const verdicts = new Map<string, number>()
    for (let count = 0; count < commands; count++) {
      const verdict = await oneCommand(at, Number(FUZZ_SEED) * 1_000_000 + count, template)
      verdicts.set(verdict, (verdicts.get(verdict) ?? 0) + 1)
    }
    if (commands >= 100) console.log(Object.fromEntries(verdicts))
    // Few of them ask.
    const all = commands < 100 ? ['apply', 'deny'] : ['apply', 'ask', 'deny']
    expect([...verdicts.keys()]).toEqual(expect.arrayContaining(all))
  },
  { timeout: 60_000 + commands * 2_000 },
)
