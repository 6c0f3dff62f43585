/**
 * Runs an approved git fetch, pull or push: git reaches the server outside the sandbox, in a repository of our own. Git in the sandbox then
 * copies the result on a private view, so that it is judged and applied like every other change.
 */

import { copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { errorText } from '../../kit/errors.ts'
import { ownerName } from '../../sandbox/private-folder.ts'
import type { Transfer } from '../../security/command/transfer.ts'
import type { Policy } from '../../security/policy.ts'
import type { Spawn, SpawnPlan, SpawnResult } from '../../tools/process.ts'
import { readHead, readRefs, readSmall } from '../../workspace/git/read-settings.ts'
import { pushHookNotRun } from './git-around.ts'
import { runOutside } from './outside-git.ts'

export type Transferring = {
  readonly plan: SpawnPlan
  readonly transfer: Transfer
  readonly policy: Policy
  readonly stateHome: string
  readonly env: { readonly [name: string]: string | undefined }
  /** Starts a confined command. */
  readonly spawn: Spawn
}

/** Never rejects. */
export async function runTransfer(of: Transferring): Promise<SpawnResult> {
  try {
    using own = createOwnRepository(of.stateHome, of.transfer.repository)
    return await transferIn(own, of)
  } catch (error) {
    return { ok: false, message: `git ${of.transfer.operation}: ${errorText(error)}` }
  }
}

async function transferIn(own: OwnRepository, { plan, transfer, policy, stateHome: _, env, spawn }: Transferring): Promise<SpawnResult> {
  const { operation, repository } = transfer
  const say = (line: string) => plan.onOutput(new TextEncoder().encode(`${line}\n`), 'stdout')
  say(`[git ${operation} outside the sandbox, with the remote "${transfer.remote}": ${transfer.shown}]`)
  const [executable = 'git'] = plan.argv
  const { signal } = plan
  const server = { redirect: false }
  const onOutput: SpawnPlan['onOutput'] = (chunk, from) => {
    server.redirect ||= /returned error: 30\d/.test(Buffer.from(chunk).toString())
    plan.onOutput(chunk, from)
  }
  const ended = await runOutside({ transfer, executable, folder: own.folder, policy, env, signal, onOutput })
  if (!ended.ok) return ended
  if (server.redirect)
    say('[the server redirects to another address, which is not followed: the remote needs its real one, often with .git at the end]')
  const done = { ...ended, sandbox: 'none', leftBehind: false } as const
  if (signal.aborted) {
    if (operation === 'push') say('[stopped: whether the server has taken it is not known; git fetch tells]')
    return done
  }
  const moved = own.moved()
  for (const line of linesOf(moved)) say(line)
  const hook = operation === 'push' && pushHookNotRun({ workspace: policy.workspace, home: policy.home, env }, repository)
  if (hook) say(`[${hook}]`)
  const after = ended.code === 0 ? transfer.after : []
  if (!repository.inside || (moved.length === 0 && after.length === 0 && operation === 'push')) return done
  const takenOver = await spawn(takeOver({ own, moved, plan, transfer, after }))
  if (!takenOver.ok) return takenOver
  if (takenOver.code !== 0 && operation === 'push') say('[the server has taken the push; only what this repository notes of it failed]')
  return { ...takenOver, sandbox: 'none', code: ended.code === 0 ? takenOver.code : ended.code }
}

const mostLines = 50

/** Returns a line for each reference, with old and new ids in full for the record. */
function linesOf(moved: readonly MovedRef[]): readonly string[] {
  const lines = moved.slice(0, mostLines).map(({ name, from, to }) => `${name}: ${from || 'new'} → ${to || 'deleted'}`)
  return moved.length > mostLines ? [...lines, `[and ${moved.length - mostLines} more]`] : lines
}

/** Runs on a private view. $1: our repository, $2: the folder of HEAD, $3: the folder of objects and references, $4: what happened. */
const script = `set -e
for pack in "$1"/objects/pack/pack-*; do
  name="$3/objects/pack/\${pack##*/}"
  [ ! -e "$pack" ] || [ -e "$name" ] || { mkdir -p "$3/objects/pack"; cp "$pack" "$name"; }
done
[ ! -e "$1/deeper" ] || cp "$1/shallow" "$3/shallow"
for list in deleted moved; do [ ! -s "$1/$list" ] || git update-ref -m "$4" --stdin < "$1/$list"; done
[ ! -e "$1/FETCH_HEAD" ] || cp "$1/FETCH_HEAD" "$2/FETCH_HEAD"
shift 4
while [ "$#" -gt 0 ]; do
  count=$1; shift
  git "\${@:1:count}"
  shift "$count"
done`

type TakingOver = Pick<Transferring, 'plan' | 'transfer'> & {
  readonly own: OwnRepository
  readonly moved: readonly MovedRef[]
  readonly after: Transfer['after']
}

function takeOver({ own, moved, plan, transfer, after }: TakingOver): SpawnPlan {
  const { repository, operation, remote } = transfer
  const list = (name: string, lines: readonly string[]) => writeFileSync(`${own.folder}/${name}`, lines.map((line) => `${line}\n`).join(''))
  list(
    'deleted',
    moved.flatMap(({ name, from, to }) => (to === '' ? [`delete ${name} ${from}`] : [])),
  )
  list(
    'moved',
    moved.flatMap(({ name, from, to }) => (to === '' ? [] : [from === '' ? `create ${name} ${to}` : `update ${name} ${to} ${from}`])),
  )
  if (own.isDeeper()) list('deeper', [])
  const words = after.flatMap((each) => [String(each.length), ...each])
  const places = [own.folder, repository.git, repository.common, `${operation} ${remote}`]
  return {
    ...plan,
    argv: ['/bin/bash', '--noprofile', '--norc', '-c', script, 'take-over', ...places, ...words],
    cwd: repository.folder,
    readablePaths: [...(plan.readablePaths ?? []), { path: own.folder }],
  }
}

/** A reference that a transfer changed: full name, old id, new id; one of the two is empty for a new and for a deleted reference. */
export type MovedRef = { readonly name: string; readonly from: string; readonly to: string }

export type OwnRepository = Disposable & {
  readonly folder: string
  moved(): readonly MovedRef[]
  /** Tells whether the list of commits without parents is another one. */
  isDeeper(): boolean
}

/**
 * Makes the empty repository in which git works outside the sandbox. It borrows the objects of the user's repository and knows its
 * references; settings, hooks and work tree stay behind. Its name tells its owner: a folder that a killed process leaves is removed at the
 * next start. @throws errors of the file system
 */
export function createOwnRepository(stateHome: string, { git, common }: Pick<Transfer['repository'], 'git' | 'common'>): OwnRepository {
  const run = join(stateHome, 'run')
  mkdirSync(run, { recursive: true, mode: 0o700 })
  const folder = mkdtempSync(join(run, `sandbox-${ownerName()}-git-`))
  const before = readRefs(common)
  for (const name of ['objects/info', 'objects/pack', 'refs']) mkdirSync(join(folder, name), { recursive: true })
  const write = (name: string, text: string) => writeFileSync(join(folder, name), text)
  const { branch, id } = readHead(git, before)
  const isLong = [...before.values()].some((each) => each.length === 64)
  write('HEAD', branch === undefined ? `${id ?? 'ref: refs/heads/none'}\n` : `ref: refs/heads/${branch}\n`)
  write('config', `[core]\nrepositoryformatversion = 1\nbare = true\n${isLong ? '[extensions]\nobjectformat = sha256\n' : ''}`)
  write('objects/info/alternates', `${join(common, 'objects')}\n`)
  write('packed-refs', [...before].map(([name, each]) => `${each} ${name}\n`).join(''))
  const shallow = join(common, 'shallow')
  if (existsSync(shallow)) copyFileSync(shallow, join(folder, 'shallow'))
  return {
    folder,
    moved: () => difference(before, readRefs(folder)),
    isDeeper: () => readSmall(shallow) !== readSmall(join(folder, 'shallow')),
    [Symbol.dispose]: () => rmSync(folder, { recursive: true, force: true }),
  }
}

/** A transfer moves nothing but what it tracks of a server. */
function difference(before: ReadonlyMap<string, string>, after: ReadonlyMap<string, string>): readonly MovedRef[] {
  return [...new Set([...before.keys(), ...after.keys()])]
    .filter((name) => /^refs\/(?:remotes|tags)\//.test(name) && before.get(name) !== after.get(name))
    .map((name) => ({ name, from: before.get(name) ?? '', to: after.get(name) ?? '' }))
}
