/** The control plane's floor must send what we send, or a share of it says nothing. */

import { expect, test } from 'bun:test'
import { activityPost } from '../../src/control/contract/activity-shapes.ts'
import type { Caller } from '../../src/control/contract/caller.ts'
import type { Command, Store } from '../../src/control/contract/store-port.ts'
import { claimRequest, taskDraft } from '../../src/control/contract/task-shapes.ts'
import { createPlane } from '../../src/control/plane/create-plane.ts'
import { openSqlite } from '../../src/control/store/open-sqlite.ts'
import { createCommands, createLookUps, type Values } from './control-commands.ts'

type Sent = { readonly texts: string[] }

/** What differs in white space alone is one text. */
function take({ texts }: Sent): readonly string[] {
  return texts.splice(0).map((text) => text.replaceAll(/\s+/g, ' '))
}

/** Texts that begin with a comment are for the executor, not for the database. */
function* noting<T>(command: Command<T>, { texts }: Sent): Command<T> {
  let step = command.next([])
  while (!step.done) {
    if (!step.value[0].startsWith('--')) texts.push(step.value[0])
    step = command.next(yield step.value)
  }
  return step.value
}

async function openPlane(sent: Sent) {
  const inner = await openSqlite({ path: ':memory:', log: () => {} })
  const store: Store = {
    ...inner,
    write: (command, beside) => inner.write(() => noting(command(), sent), beside),
    read: (command) => inner.read(() => noting(command(), sent)),
  }
  const plane = createPlane({
    ...{ store, now: Date.now, random: Math.random, log: () => {}, leaseSeconds: 60, approvalHours: 24, retentionDays: 30 },
    randomBytes: (count) => crypto.getRandomValues(new Uint8Array(count)),
  })
  return { plane, [Symbol.asyncDispose]: () => inner.close() }
}

const secret = 'cpo_operator-token-of-the-bench-0123456789'
const claiming = claimRequest.parse({ role: 'bench', agent_id: 'w0' })
const never = new AbortController().signal

async function ours() {
  const sent: Sent = { texts: [] }
  await using opened = await openPlane(sent)
  const { plane } = opened
  const asCaller = async (own: string): Promise<Caller> => {
    const caller = await plane.access.callerOf(own)
    if (!caller) throw new Error('nobody has this secret')
    return caller
  }
  await plane.access.firstOperator('bench', secret)
  const operator = await asCaller(secret)
  await plane.fleet.add(operator, { id: 'w0', role: 'bench', description: '', daily_tokens: null, heartbeat_enabled: true })
  const { key } = await plane.fleet.newKey(operator, 'w0')
  // The first use of a key and the first claim are noted, those of the next seconds are not.
  await plane.tasks.claim(await asCaller(key), claiming, never)
  take(sent)

  await plane.tasks.create(await asCaller(secret), taskDraft.parse({ title: 'bench', role: 'bench', context: { at: 1 } }))
  const create = take(sent)
  const claimed = await plane.tasks.claim(await asCaller(key), claiming, never)
  if (!claimed) throw new Error('there was no task to claim')
  const claim = take(sent)
  const result = { status: 'success', output: 'done' }
  const post = { event_type: 'task_completed', task_id: claimed.task.task_id, agent_id: 'w0', skill_executed: 'bench', result }
  await plane.activity(await asCaller(claimed.run_token), activityPost.parse(post))
  return { create, claim, complete: take(sent) }
}

/** The floor goes on after what it read as with a task that it may have. */
const row: Values = { id: 1, candidate: 1, run_id: 2, task_id: 1, attempt: 1, status: 'running', value: 1 }

function ofFloor() {
  const sent: Sent = { texts: [] }
  const send = (text: string) => {
    sent.texts.push(text)
    return [row]
  }
  const [{ operatorOf, agentOf, runOf }, commands] = [createLookUps(send), createCommands(send)]
  operatorOf(secret)
  commands.create({ title: 'bench', role: 'bench' })
  const create = take(sent)
  agentOf(secret)
  commands.claim({ role: 'bench', agent_id: 'w0' })
  const claim = take(sent)
  runOf(secret)
  commands.complete({ id: 2, task_id: 1 }, '{}')
  return { create, claim, complete: take(sent) }
}

test('the floor sends the same statements in the same order for a create, a claim and a completion', async () => {
  const sent = await ours()
  expect(Object.values(sent).map((texts) => texts.length)).toEqual([5, 7, 8])
  expect(ofFloor()).toEqual(sent)
})
