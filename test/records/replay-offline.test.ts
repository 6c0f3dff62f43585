/** A replay needs no network: in a namespace without any, it prints the same bytes as the run did. */

import { expect, test } from 'bun:test'
import { createServer } from 'node:net'
import { asReplayed } from '../support/replayed.ts'
import { call, home, turn } from '../support/turns.ts'

const ways = [
  ['unshare', '-n'],
  ['unshare', '-r', '-n'],
]
const offline = ways.find((words) => Bun.which('unshare') !== null && Bun.spawnSync([...words, 'true']).success)
if (!offline) console.warn('SKIPPED: replay without a network is not tested, for this system lets nobody unshare one (unshare -n)')

const script = [
  call('time', {}),
  call('file_list', { path: '.' }),
  call('http', { url: 'http://127.0.0.1:9/' }),
  { text: 'So: {{last_tool_result}}' },
]

test.if(offline !== undefined)('replay prints the bytes of the run where there is no network at all', async () => {
  using at = home()
  at.file('notes.txt', 'hello')
  const { stdout } = await turn(at, script, ['--output-format', 'stream-json'])
  const live = asReplayed(stdout)
  const through = offline ?? []
  const replayed = await at.run(['replay', 'last'], { through })
  expect(replayed).toEqual({
    code: 0,
    stdout: live,
    stderr: expect.stringMatching(/^run_\w+: the same, \d+ events, digest [0-9a-f]{64}\n$/),
  })
  expect((await at.run(['replay', '--all', '--json'], { through })).code).toBe(0)
  expect(live).toContain('notes.txt')
})

test.if(offline !== undefined)('there really is none: a server here cannot be reached from there', async () => {
  const server = createServer((socket) => socket.end())
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const address = server.address()
  const port = typeof address === 'object' && address ? address.port : 0
  const reach = (through: readonly string[]) =>
    Bun.spawnSync([...through, process.execPath, '-e', `await Bun.connect({hostname:'127.0.0.1',port:${port},socket:{data(){}}})`]).success
  const child = Bun.spawn([process.execPath, '-e', `(await Bun.connect({hostname:'127.0.0.1',port:${port},socket:{data(){}}})).end()`])
  expect(await child.exited).toBe(0)
  expect(reach(offline ?? [])).toBe(false)
  server.close()
})
