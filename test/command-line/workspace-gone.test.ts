/** A workspace that somebody takes away while we stand in it: one sentence that names it, and no code of the system. */

import { expect, test } from 'bun:test'
import { mkdirSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { createAgent, type ModelCall } from '../../src/agent.ts'
import { channelRows } from '../../src/channels/list.ts'
import { silentContext } from '../../src/host/open/library.ts'
import { openHost } from '../../src/host/open/open-host.ts'
import { loadSetup } from '../../src/host/setup/setup.ts'
import { modelCallProvider } from '../../src/providers/model-call.ts'
import { nest } from '../support/cli.ts'
import { dialects, type Speech } from '../support/dialects.ts'
import { home } from '../support/turns.ts'
import { type Fake, sends, startFake } from '../support/vendor-fake.ts'

const gone = (folder: string) => `the workspace "${folder}" is gone; create it again, or name another with --workspace`
const lists = { calls: [{ id: 'call_1', name: 'file_list', args: ['{"path":"."}'] }] }

/** A model that takes the folder away before it says the first of these. */
function taker(folder: string, replies: readonly Speech[]): Fake {
  return startFake((_, n) => {
    if (n === 0) rmSync(folder, { recursive: true })
    return sends(dialects[0]?.events(replies[n] ?? {}) ?? [])
  })
}

const far = (url: string) => `\n[providers.models.far]\nkind = "openai-compatible"\nmodel = "m"\nbase_url = "${url}"\nmax_retries = 0\n`

function project(dir: string): string {
  const folder = join(dir, 'project')
  mkdirSync(folder)
  return folder
}

test('between the question and the first call of a tool', async () => {
  using at = nest()
  const folder = project(at.dir)
  const fake = taker(folder, [lists, { text: ['never asked'] }])
  at.config(far(fake.url))
  const { code, stdout, stderr } = await at.run(['agent', '-C', folder, '--model', 'far/m', '-m', 'what is here?'])
  fake.stop()
  expect([code === 0, stdout]).toEqual([false, ''])
  expect(stderr).toBe(`error: ${gone(folder)}\n`)
})

test('in a conversation: the next turn asks no model, and /tools says it too', async () => {
  using at = home()
  const folder = project(at.dir)
  const fake = taker(folder, [{ text: ['Hello there.'] }])
  at.config(far(fake.url))
  const { code, stdout } = await at.terminal(
    ['agent', '-C', folder, '--model', 'far/m'],
    [
      ['/help', 'hi\r'],
      ['Hello there.', ''],
      ['> ', 'what is here?\r'],
      ['is gone', '/tools\r'],
      ['is gone', '/exit\r'],
    ],
  )
  fake.stop()
  expect([code, fake.asked.length]).toEqual([0, 1])
  expect(stdout.replaceAll('\r', '').split(`error: ${gone(folder)}\n`)).toHaveLength(3)
  expect(stdout).not.toContain('ENOENT')
})

test('before the first turn of a program that waits: no model is asked', async () => {
  using at = nest()
  const folder = project(at.dir)
  const context = silentContext({ channels: channelRows, home: join(at.home, '.braidclaw'), env: { HOME: at.home } })
  const model = { asked: 0 }
  const provider = modelCallProvider(async function* () {
    model.asked += 1
    yield { type: 'text', content: 'Nothing.' }
  })
  const host = await openHost(loadSetup(context, { workspace: folder }))
  const conversation = await host.conversation({ kind: 'new' }, { channel: 'library', provider })
  rmSync(folder, { recursive: true })
  await expect(conversation.run('what is here?').next()).rejects.toThrow(gone(folder))
  await host.close()
  expect(model.asked).toBe(0)
})

test('once it is there again, the same conversation goes on', async () => {
  using at = nest()
  const folder = project(at.dir)
  const taken = { once: false }
  const says: ModelCall = async function* (messages) {
    if (!taken.once) rmSync(folder, { recursive: true })
    taken.once = true
    const last = messages.at(-1)
    if (last?.role === 'tool') yield { type: 'text', content: last.content }
    else yield { type: 'tool_use', name: 'file_list', input: { path: '.' } }
  }
  const agent = createAgent({ cwd: folder, home: join(at.home, '.braidclaw'), env: { HOME: at.home }, modelCall: says })
  const troubles = async () => {
    const said: string[] = []
    for await (const event of agent.run('what is here?')) if (event.type === 'error') said.push(event.message)
    return said
  }
  expect(await troubles()).toEqual([gone(folder)])
  await expect(troubles()).rejects.toThrow(gone(folder))
  mkdirSync(folder)
  expect(await troubles()).toEqual([])
  expect(agent.ending()?.code).toBe('answered')
  await agent.close()
})
