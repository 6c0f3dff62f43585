/** Tests the channels of plugins as real children in bubblewrap: what a process may say, and that one that lies, floods or dies harms nobody. */

import { expect, test } from 'bun:test'
import { appendFileSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../../test/support/discord/client.ts'
import { needs } from '../../../test/support/needs.ts'
import { stagePlugins } from '../../host/toolset/guests/plugins/plugin.fixture.ts'
import { createMemoryStage } from '../../memory/fixture.ts'
import { createChannelStore } from '../../memory/recovery/channel-store.ts'
import type { ChannelHost, InboundMessage } from '../inbox/channel-api.ts'
import { openPluginChannel } from './channel.ts'

const real = test.if(needs('bwrap', 'python3'))

/** Starts the channel of the plugins, and takes its messages in place of the host. */
function listen(at: ReturnType<typeof stagePlugins>, ...names: string[]) {
  const memory = createMemoryStage()
  const received: InboundMessage[] = []
  const troubles: (string | undefined)[] = []
  const logged: string[] = []
  const end = new AbortController()
  const log = (_: string, event: string, fields: object = {}) => void logged.push(`${event} ${JSON.stringify(fields)}`)
  const setup = { ...at.setup, log }
  const channel = openPluginChannel(setup, names)
  const over = channel.start(
    {
      setup,
      channelStore: createChannelStore(memory.memory.store),
      receive: (message: InboundMessage) => void received.push(message),
      trouble: (why?: string) => void troubles.push(why),
    } as unknown as ChannelHost,
    end.signal,
  )
  const next = async (count: number) => {
    await until(() => received.length >= count)
    return received[count - 1] as InboundMessage
  }
  return {
    channel,
    received,
    troubles,
    logged,
    next,
    async [Symbol.asyncDispose]() {
      end.abort()
      await over
      memory.remove()
    },
  }
}

const hello = (text: string) => `if method == "hello":\n    message(address="room", person="ada", text=${JSON.stringify(text)}, id="m1")`
const echo = `if method == "send":\n    answer({})\n    message(address="room", person="ada", text=json.dumps(params))`

real('messages come in under the name of the plugin, and answers go out with the message that they answer', async () => {
  using at = stagePlugins('channel')
  at.put('irc', `${hello('hi')}\n${echo}`)
  await at.approve('irc')
  await using on = listen(at, 'irc')
  const first = await on.next(1)
  expect(first).toMatchObject({ channel: 'irc/room', person: 'irc/ada', text: 'hi', conversation: 'plugins irc/room' })
  await first.answer('hello \u001b[2J')
  const sent = JSON.parse((await on.next(2)).text)
  expect(sent).toEqual({ address: 'room', text: 'hello \u001b[2J', reply_to: 'm1', key: expect.any(String) })
  await on.channel.send('irc/room', 'scheduled')
  expect(JSON.parse((await on.next(3)).text).text).toBe('scheduled')
  expect(on.channel.send('other/room', 'x')).rejects.toThrow('no plugin of [channels.plugins] has the address other/room')
})

real('one that is not approved, disabled, or without the capability does not run, and the other one does', async () => {
  using at = stagePlugins('channel')
  for (const name of ['planted', 'off', 'on']) at.put(name, hello(name))
  await at.approve('off')
  await at.plugins.enable('off', false)
  await at.approve('on')
  await using on = listen(at, 'planted', 'off', 'on', 'missing')
  expect((await on.next(1)).text).toBe('on')
  await until(() => on.logged.length >= 4)
  const said = on.troubles.at(-1) ?? ''
  for (const why of [
    'planted: plugin planted does not run: it is not approved',
    'off: plugin off does not run: it is disabled',
    'no plugin "missing"',
  ])
    expect(said).toContain(why)
  expect(on.received).toHaveLength(1)
})

real('files that change after the approval end the process, and a new approval starts the new ones', async () => {
  using at = stagePlugins('channel')
  at.put('irc', hello('first'))
  await at.approve('irc')
  await using on = listen(at, 'irc')
  await on.next(1)
  at.put('irc', hello('second'))
  await until(() => on.troubles.length >= 2)
  expect(on.troubles.at(-1)).toContain('its files changed after they were approved')
  expect(on.channel.send('irc/room', 'x')).rejects.toThrow('its files changed')
  await at.approve('irc')
  expect((await on.next(2)).text).toBe('second')
  await until(() => on.troubles.at(-1) === undefined)
})

real('it sees no file and no host, and none of our variables', async () => {
  using at = stagePlugins('channel')
  const look = `if method == "hello":
    import socket
    try:
        socket.create_connection(("127.0.0.1", 1), 1)
        net = "open"
    except OSError as error:
        net = "closed"
    message(address="r", person="p", text=json.dumps([os.path.exists(${JSON.stringify(at.workspace)} + "/secret.txt"), os.environ.get("API_KEY"), net]))`
  appendFileSync(join(at.workspace, 'secret.txt'), 'x')
  at.put('irc', look)
  await at.approve('irc')
  await using on = listen(at, 'irc')
  expect(JSON.parse((await on.next(1)).text)).toEqual([false, null, 'closed'])
})

const bad = {
  garbage: [`print("\\x1b[2J hello", flush=True)`, 'what is not JSON-RPC'],
  stranger: [`send(id="other", result={})`, 'which is not open'],
  escape: [`message(address="r", person="\\x1b[2J", text="x")`, 'without control characters'],
  nobody: [`message(address="r", text="x")`, 'without control characters'],
  flood: ['os.write(1, b"x" * 100_000_000)', 'line longer than'],
  ends: ['sys.exit(3)', 'exit code 3'],
} as const

real(
  'one that says what it must not is ended and started again later and later, with the reason; the others go on',
  async () => {
    using at = stagePlugins('channel')
    for (const [name, [body]] of Object.entries(bad)) at.put(name, `if method == "hello":\n    ${body}`)
    at.put('good', hello('still here'))
    for (const name of [...Object.keys(bad), 'good']) await at.approve(name)
    await using on = listen(at, ...Object.keys(bad), 'good')
    await until(() =>
      Object.entries(bad).every(([name, [, why]]) => on.logged.some((line) => line.includes(`"${name}"`) && line.includes(why))),
    )
    expect((await on.next(1)).text).toBe('still here')
    expect(on.received).toHaveLength(1)
    expect(on.logged.join('')).not.toContain('\u001b')
  },
  60_000,
)

real(
  'one that dies while it sends an answer loses none: the next process sends it',
  async () => {
    using at = stagePlugins('channel')
    const dies = `if method == "send" and os.path.exists(${JSON.stringify(join(at.workspace, 'die'))}):\n    sys.exit(1)\n`
    at.put('irc', `${hello('hi')}\n${dies}${echo}`, '[permissions]\nfiles = "read"\n')
    await at.approve('irc')
    appendFileSync(join(at.workspace, 'die'), '')
    await using on = listen(at, 'irc')
    const first = await on.next(1)
    await first.answer('kept')
    expect(on.logged.join('\n')).toContain('answer waits')
    await Bun.file(join(at.workspace, 'die')).delete()
    await until(() => on.received.some(({ text }) => text.includes('"kept"')))
  },
  60_000,
)

real('a flood of messages is cut at those that wait for an answer', async () => {
  using at = stagePlugins('channel')
  at.put(
    'irc',
    `if method == "hello":\n    for n in range(5000):\n        message(address="r", person="p", text=str(n))\n    message(address="r", person="p", text="end")`,
  )
  await at.approve('irc')
  await using on = listen(at, 'irc')
  await until(() => on.logged.some((line) => line.includes('200 messages wait for an answer')))
  await until(() => on.logged.some((line) => line.includes('channel started')))
  expect(on.received).toHaveLength(200)
  expect(on.logged.filter((line) => line.includes('message ignored'))).toHaveLength(1)
})
