/**
 * Tests in a separate process that a closed connection does not keep it alive, and that no library is loaded before the first connection.
 */

import { afterAll, beforeAll, expect, test } from 'bun:test'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { until } from '../../../test/support/discord/client.ts'
import { CHANNEL, type FakeDiscord, startDiscord, TOKEN } from '../../../test/support/discord/fake.ts'
import { startWire } from '../../../test/support/discord/wire.ts'

const place = { folder: '' }

beforeAll(() => {
  place.folder = mkdtempSync(join(tmpdir(), 'discord-'))
})
afterAll(() => rmSync(place.folder, { recursive: true }))

/** Connects, runs `body` with `discord`, and must then end by itself. */
async function run(fake: FakeDiscord, body: string, sleep = 'undefined') {
  const file = join(place.folder, `${crypto.randomUUID()}.ts`)
  writeFileSync(
    file,
    `import { connectDiscord } from ${JSON.stringify(join(import.meta.dir, 'connect.ts'))}
    const log = (level: string, event: string, fields: object) => console.log(event, JSON.stringify(fields ?? {}))
    const discord = await connectDiscord({ token: '${TOKEN}', channelIds: '${CHANNEL}', restApi: '${fake.api}', fetch, log, sleep: ${sleep} })
    if (!discord.ok) throw new Error(discord.message)
    ${body}`,
  )
  const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', file], { stdio: ['ignore', 'pipe', 'pipe'] })
  return { output: async () => [await child.stdout.text(), await child.stderr.text(), await child.exited].join('\n'), exited: child.exited }
}

test('a process ends by itself once its connection is closed, whatever it was doing', async () => {
  using fake = startDiscord({ heartbeatMs: 30 })
  fake.rest.trouble.next.push({ status: 429, headers: { 'retry-after': '60', 'x-ratelimit-global': 'true' } })
  const child = await run(
    fake,
    `for await (const { text } of discord.messages) {
      void discord.send('${CHANNEL}', text)
      await Bun.sleep(50)
      void discord.typing('${CHANNEL}')
      await Bun.sleep(20)
      break
    }
    await discord.close()
    console.log('closed', JSON.stringify(await discord.ended))`,
  )
  await until(() => fake.gateway.seen.identifies.length === 1)
  fake.say('answer me')
  expect(await child.output()).toMatch(/closed \{"ok":true\}\n+0$/)
  expect(fake.gateway.seen.closes).toEqual([1000])
})

test('a process ends by itself though nobody answers its goodbye', async () => {
  using fake = startDiscord()
  using wire = startWire(fake.port)
  fake.moveGateway(wire.port)
  const child = await run(
    fake,
    `for await (const _ of discord.messages) {
      await Bun.sleep(100)
      await discord.close()
    }`,
  )
  await until(() => fake.gateway.seen.identifies.length === 1)
  fake.say('now close')
  await Bun.sleep(40)
  wire.freeze()
  expect(await child.exited).toBe(0)
})

test('a process ends by itself after its first heartbeat was already one too many', async () => {
  using fake = startDiscord({ heartbeatMs: 60 })
  fake.gateway.trouble.mute = true
  const child = await run(fake, `for await (const _ of discord.messages) await discord.close()`, '() => Bun.sleep(10)')
  await until(() => fake.gateway.seen.identifies.length === 1)
  fake.gateway.ask(1)
  await until(() => fake.gateway.seen.closes.length === 1)
  fake.say('now close')
  expect(await child.exited).toBe(0)
})

test('a process ends by itself when Discord ended the connection for good, in the middle of the wait to come back too', async () => {
  using fake = startDiscord()
  const child = await run(fake, `console.log(JSON.stringify(await discord.ended))`, '() => Bun.sleep(10)')
  await until(() => fake.gateway.seen.identifies.length === 1)
  fake.gateway.trouble.refuse.push(4004, 4004)
  fake.gateway.drop(4004)
  expect(await child.output()).toContain('"ok":false,"message":"Discord refuses the bot token (4004)')

  const waiting = await run(
    fake,
    `const print = console.log
    console.log = (...words) => {
      print(...words)
      if (words[0] === 'discord disconnected') setTimeout(() => discord.close(), 60)
    }`,
  )
  await until(() => fake.gateway.seen.identifies.length === 2)
  fake.gateway.drop(4000)
  expect(await waiting.output()).toContain('"waitMs":5000')
})

test('to know how to connect costs nothing until one does', async () => {
  const script = `await import(${JSON.stringify(join(import.meta.dir, 'connect.ts'))})
    console.log(Object.keys(require.cache).filter((path) => path.includes('node_modules')).length)`
  const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-env-file', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  expect(await child.stdout.text()).toBe('0\n')
})
