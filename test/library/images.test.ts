/** Images of a program's turns: what is refused, and what the model of the program gets. */

import { expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type BraidClaw, createAgent, type Message, type ModelCall, type TurnExtras } from '../../src/agent.ts'
import { gif, png } from '../support/picture.ts'

function folders() {
  const dir = mkdtempSync(join(tmpdir(), 'braidclaw-images-'))
  const cwd = join(dir, 'workspace')
  mkdirSync(cwd)
  return { dir, cwd, home: join(dir, 'home'), env: { HOME: dir }, [Symbol.dispose]: () => rmSync(dir, { recursive: true, force: true }) }
}

const silent: ModelCall = async function* () {
  yield { type: 'text', content: 'ok' }
}

const refusal = (agent: BraidClaw, images: TurnExtras['images']): Promise<unknown> =>
  Array.fromAsync(agent.run('look', images ? { images } : {})).then(
    () => 'not refused',
    (error: unknown) => String(error),
  )

test('a forbidden, missing or lying file, and too many, are refused before a turn begins', async () => {
  using at = folders()
  writeFileSync(join(at.cwd, '.env'), png())
  writeFileSync(join(at.cwd, 'lie.png'), 'hello')
  symlinkSync('/etc/passwd', join(at.cwd, 'link.png'))
  const agent = createAgent({ ...at, modelCall: silent })
  for (const [image, why] of [
    ['.env', 'security.forbidden_reads'],
    ['link.png', 'the rule "path.forbidden" refuses'],
    ['/etc/passwd', 'forbidden path /etc'],
    [join(at.home, 'memory.sqlite'), 'belongs to BraidClaw itself'],
    ['none.png', 'does not exist'],
    ['.', 'not a regular file'],
    ['lie.png', 'not a PNG, JPEG, WebP or GIF picture'],
    [png().subarray(0, 20), 'image number 1: it is a broken PNG'],
  ] as const)
    expect(await refusal(agent, [image])).toContain(why)
  expect(await refusal(agent, Array(21).fill(png()))).toContain('21 images: a message takes 20 at most')
  expect(agent.runId()).toBeUndefined()
  await agent.close()
})

test('paths, also outside of the workspace, and bytes reach the model; a later turn has them again, and its own', async () => {
  using at = folders()
  writeFileSync(join(at.cwd, 'a.png'), png())
  writeFileSync(join(at.dir, 'b.gif'), gif())
  const asked: (readonly Message[])[] = []
  const agent = createAgent({
    ...at,
    async *modelCall(messages) {
      asked.push(messages)
      yield { type: 'text', content: 'ok' }
    },
  })
  const base64 = (bytes: Uint8Array) => Buffer.from(bytes).toString('base64')
  const [a, b, c] = [png(), gif(), png({ width: 9 })].map(base64)
  for await (const _ of agent.run('one', { images: ['a.png', join(at.dir, 'b.gif')] }));
  for await (const _ of agent.run('two', { images: [png({ width: 9 })], signal: new AbortController().signal }));
  for await (const _ of agent.run('three', new AbortController().signal));
  const pictures = (n: number) => asked[n]?.flatMap((message) => (message.role === 'user' ? [message.pictures] : []))
  const first = [
    { type: 'image/png', base64: a },
    { type: 'image/gif', base64: b },
  ]
  expect(pictures(0)).toEqual([first] as never)
  expect(pictures(2)).toEqual([first, [{ type: 'image/png', base64: c }], undefined] as never)
  await agent.close()
})
