/**
 * Carries out an approved git fetch, pull or push: git reaches the server outside the sandbox, in a repository of our own; what came is then
 * taken over by git in the sandbox, on a private view, so that it is judged and applied like every other change.
 */

import { writeFileSync } from 'node:fs'
import type { Transfer } from '../../../security/command/transfer/transfer.ts'
import type { Policy } from '../../../security/policy.ts'
import type { Ended, Spawn, SpawnPlan } from '../../../tools/process.ts'
import { pushHookNotRun } from '../git-around.ts'
import { runOutside } from './outside-git.ts'
import { createOwnRepository, type MovedRef, type OwnRepository } from './own-repository.ts'

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
export async function runTransfer(of: Transferring): Promise<Ended> {
  try {
    using own = createOwnRepository(of.stateHome, of.transfer)
    return await transferIn(own, of)
  } catch (error) {
    return { ok: false, message: `git ${of.transfer.operation}: ${error instanceof Error ? error.message : String(error)}` }
  }
}

async function transferIn(own: OwnRepository, { plan, transfer, policy, stateHome: _, env, spawn }: Transferring): Promise<Ended> {
  const { operation, repository } = transfer
  const say = (line: string) => plan.onOutput(new TextEncoder().encode(`${line}\n`), 'stdout')
  say(`[git ${operation} outside the sandbox, with the remote "${transfer.remote}": ${transfer.shown}]`)
  const [executable = 'git'] = plan.argv
  const { signal } = plan
  const heard = { redirect: false }
  const onOutput: SpawnPlan['onOutput'] = (chunk, from) => {
    heard.redirect ||= /returned error: 30\d/.test(Buffer.from(chunk).toString())
    plan.onOutput(chunk, from)
  }
  const ended = await runOutside({ transfer, executable, folder: own.folder, policy, env, signal, onOutput })
  if (!ended.ok) return ended
  if (heard.redirect)
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
  const taken = await spawn(takeOver({ own, moved, plan, transfer, after }))
  if (!taken.ok) return taken
  if (taken.code !== 0 && operation === 'push') say('[the server has taken the push; only what this repository notes of it failed]')
  return { ...taken, sandbox: 'none', code: ended.code === 0 ? taken.code : ended.code }
}

const mostLines = 50

/** Old and new ids in full, for the record. */
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
