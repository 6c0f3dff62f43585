import { describe, expect, test } from 'bun:test'
import { collect, connected, optionsFor, until } from '../../../test/support/discord/client.ts'
import { CHANNEL, startDiscord } from '../../../test/support/discord/fake.ts'
import { connectDiscord } from './connect.ts'

describe('closing', () => {
  test('it says goodbye, ends the messages and leaves no connection', async () => {
    using fake = startDiscord()
    const { discord } = await connected(fake)
    await discord.close()
    expect(await discord.ended).toEqual({ ok: true })
    expect(collect(discord)).toEqual([])
    await until(() => fake.gateway.seen.open() === 0)
    expect(fake.gateway.seen.closes).toEqual([1000])
    await discord.close()
    expect(await discord.send(CHANNEL, 'too late')).toMatchObject({ ok: false })
  })

  test('a signal closes it too, at any moment of the connecting, and it does not come back', async () => {
    using fake = startDiscord()
    for (let moment = 0; moment < 12; moment += 1) {
      const stop = new AbortController()
      const connecting = connectDiscord(optionsFor(fake, { signal: stop.signal }).options)
      await Bun.sleep(moment / 2)
      stop.abort()
      const result = await connecting
      if (result.ok) expect(await result.ended).toEqual({ ok: true })
      else expect(result.message).toBe('closed before Discord was connected')
    }
    const { connections } = fake.gateway.seen
    await until(() => fake.gateway.seen.open() === 0)
    await Bun.sleep(600)
    expect(fake.gateway.seen.connections).toBe(connections)
  })

  test('closed while it asks for the gateway it does not go there', async () => {
    using fake = startDiscord()
    const stop = new AbortController()
    const { options } = optionsFor(fake, { signal: stop.signal })
    const answered: typeof options.fetch = async (url, init) => {
      const answer = await options.fetch(url, init)
      const arrayBuffer = async () => {
        const { buffer } = await answer.bytes()
        stop.abort()
        return buffer
      }
      return Object.assign(answer, { arrayBuffer })
    }
    expect(await connectDiscord({ ...options, fetch: answered })).toMatchObject({ ok: false })
    await Bun.sleep(20)
    expect(fake.gateway.seen.connections).toBe(0)
  })

  test('it closes while it waits to come back', async () => {
    using fake = startDiscord()
    const { promise: waiting, resolve } = Promise.withResolvers<void>()
    const sleep = (_: number, signal: AbortSignal) => {
      resolve()
      return new Promise<void>((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
    }
    const { discord } = await connected(fake, { sleep })
    fake.gateway.drop(4000)
    await waiting
    await discord.close()
    expect(await discord.ended).toEqual({ ok: true })
  })
})
