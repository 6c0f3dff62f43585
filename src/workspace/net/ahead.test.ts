import { expect, test } from 'bun:test'
import { preconnectTo } from './provider-fetch.ts'

/** Counts connections, and answers every request on them with "ok". */
function listen() {
  const state = { connections: 0 }
  const server = Bun.listen({
    hostname: '127.0.0.1',
    port: 0,
    socket: {
      open: () => {
        state.connections += 1
      },
      data: (socket) => void socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok'),
    },
  })
  return { state, url: `http://127.0.0.1:${server.port}/v1`, [Symbol.dispose]: () => server.stop(true) }
}

async function soon(done: () => boolean): Promise<void> {
  for (let looks = 0; looks < 400 && !done(); looks += 1) await Bun.sleep(5)
}

test('the request takes over the connection that was opened ahead', async () => {
  using server = listen()
  preconnectTo(server.url, {})
  await soon(() => server.state.connections > 0)
  expect(server.state.connections).toBe(1)
  expect(await (await fetch(server.url)).text()).toBe('ok')
  expect(server.state.connections).toBe(1)
})

test('with a proxy nothing is opened past it', async () => {
  using server = listen()
  preconnectTo(server.url, { https_proxy: 'http://proxy.example:3128' })
  await Bun.sleep(30)
  expect(server.state.connections).toBe(0)
})

test.each(['http://127.0.0.1:1/v1', 'http://nowhere.invalid:8080', 'https://api.example.org/v1', 'nonsense'])(
  '%s does no harm',
  async (url) => {
    preconnectTo(url, {})
    await Bun.sleep(5)
  },
)
