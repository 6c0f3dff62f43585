/**
 * Measures a conversation at a pseudo-terminal against a model on loopback that sends 200 tokens of Markdown a second: the time from the
 * start to the prompt, and from a key to its echo while the answer streams. Run: bun bench/keystroke.ts [KEYS]
 */

import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

const keys = Number(process.argv[2] ?? 300)
const home = mkdtempSync(join(tmpdir(), 'braidclaw-bench-'))
const chunk = (delta: object) => `data: ${JSON.stringify({ id: 'c', choices: [{ index: 0, delta }] })}\n\n`
const words = ['**bold** ', 'word ', '`code` ', '- item\n', 'text ', '日本 ']
const server = Bun.serve({
  hostname: '127.0.0.1',
  port: 0,
  idleTimeout: 0,
  fetch: (request) =>
    request.method === 'GET'
      ? new Response('{}', { status: 404 })
      : new Response(
          new ReadableStream({
            async start(stream) {
              for (let at = 0; !request.signal.aborted; at += 1) {
                stream.enqueue(chunk({ content: words[at % words.length] }))
                await Bun.sleep(5)
              }
            },
          }),
          { headers: { 'content-type': 'text/event-stream' } },
        ),
})
mkdirSync(join(home, '.braidclaw'))
mkdirSync(join(home, 'work'))
writeFileSync(
  join(home, '.braidclaw/config.toml'),
  `workspace_dir = "${home}/work"\ndefault_provider = "far"\n[providers.models.far]\nkind = "openai-compatible"\nbase_url = "http://127.0.0.1:${server.port}/v1"\nmodel = "m"\n`,
)

const seen = { tail: '', waits: '' as string, answer: () => {} }
const waitFor = (text: string) =>
  new Promise<void>((resolve) => {
    Object.assign(seen, { waits: text, answer: resolve })
    if (seen.tail.includes(text)) resolve()
  })

function start() {
  seen.tail = ''
  return Bun.spawn([join(import.meta.dir, '../bin/braidclaw'), 'agent'], {
    cwd: join(home, 'work'),
    env: { HOME: home, PATH: process.env.PATH ?? '', TERM: 'xterm-256color', LANG: 'C.UTF-8' },
    terminal: {
      cols: 120,
      rows: 40,
      data(_, bytes) {
        seen.tail = (seen.tail + new TextDecoder().decode(bytes)).slice(-20_000)
        if (seen.waits !== '' && seen.tail.includes(seen.waits)) seen.answer()
      },
    },
  })
}

const percentile = (times: readonly number[], share: number) =>
  times.toSorted((a, b) => a - b)[Math.floor((times.length - 1) * share)]?.toFixed(1)
const report = (name: string, times: readonly number[]) =>
  console.log(`${name}: p50 ${percentile(times, 0.5)} ms, p99 ${percentile(times, 0.99)} ms, longest ${percentile(times, 1)} ms`)

const prompts: number[] = []
for (let at = 0; at < 10; at += 1) {
  const begun = performance.now()
  const child = start()
  await waitFor('> ')
  prompts.push(performance.now() - begun)
  child.kill()
  await child.exited
}
report('start to prompt', prompts)

const child = start()
await waitFor('/help')
child.terminal?.write('go\r')
await waitFor('bold')
const echoes: number[] = []
for (let at = 0; at < keys; at += 1) {
  const letter = String.fromCharCode(97 + (at % 26))
  seen.tail = ''
  const begun = performance.now()
  child.terminal?.write(letter)
  await waitFor(`${letter}\r\r\n`)
  echoes.push(performance.now() - begun)
  if (at % 26 === 25) child.terminal?.write('\u0015')
  await Bun.sleep(20 + (at % 7))
}
report('key to echo', echoes)
child.kill('SIGKILL')
await server.stop(true)
rmSync(home, { recursive: true, force: true })
