/** Commands that stay in the background of a conversation, through a host with a scripted model and a real sandbox. */

import { describe, expect, test } from 'bun:test'
import { copyFileSync, existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import type { Conversation, Host } from '../../src/host/api.ts'
import type { ModelCall } from '../../src/providers/model-call.ts'
import type { AgentEvent } from '../../src/runtime/event.ts'
import { sandboxMark } from '../../src/sandbox/private-folder.ts'
import { begin, type Place, place } from '../support/host.ts'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'

const real = test.if(needs('bwrap', 'node', 'curl'))
/** More of the same kind, for the thorough tier. */
const thorough = isDeep ? real : () => {}

type Call = readonly [name: string, input: object]

type Scene = {
  readonly at: Place
  readonly host: Host
  readonly conversation: Conversation
  /** One turn that makes these calls, one after the other. @returns what the model was told about each */
  turn(...calls: readonly Call[]): Promise<readonly string[]>
  /** One turn with one call. */
  call(name: string, input: object): Promise<string>
  /** Reads the output of a job until it contains the text, from where the text before was found. */
  until(id: string, text: string): Promise<string>
}

async function opened(host: Host, more: object = {}): Promise<Omit<Scene, 'host' | 'at'>> {
  const state: { calls: readonly Call[]; results: string[] } = { calls: [], results: [] }
  const model: ModelCall = async function* (messages) {
    const last = messages.at(-1)
    if (last?.role === 'tool') state.results.push(last.content)
    const [next] = state.calls.slice(state.results.length)
    if (next) yield { type: 'tool_use', name: next[0], input: { ...next[1] } }
    else yield { type: 'text', content: 'done' }
  }
  const conversation = await begin(host, model, more)
  const turn: Scene['turn'] = async (...calls) => {
    Object.assign(state, { calls, results: [] })
    for await (const event of conversation.run('go')) await answer(conversation, event)
    return state.results
  }
  /** What was read of each job. */
  const logs = new Map<string, string>()
  const call: Scene['call'] = async (name, input) => {
    const [result = ''] = await turn([name, input])
    const [, id] = /\[(job-\d+) [^[]*$/.exec(result) ?? []
    if (id) logs.set(id, (logs.get(id) ?? '') + result)
    return result
  }
  /** Reading costs a turn, so it happens when there is something to read. */
  const seen = new Map<string, string>()
  const printsMore = async (id: string, log: string) => {
    const facts = () =>
      JSON.stringify(
        conversation
          .jobs()
          ?.list()
          .find((job) => job.id === id),
      )
    while (seen.get(id) === `${facts()} ${log}`) await Bun.sleep(2)
    seen.set(id, `${facts()} ${log}`)
  }
  return {
    conversation,
    turn,
    call,
    async until(id, text) {
      for (;;) {
        const log = logs.get(id) ?? ''
        const at = log.indexOf(text)
        if (at >= 0) logs.set(id, log.slice(at + text.length))
        if (at >= 0) return log.slice(0, at + text.length)
        if (/\[job-\d+ ended/.test(log)) throw new Error(log)
        await printsMore(id, log)
        await call('shell_output', { id })
      }
    },
  }
}

/** Says yes to every question. */
async function answer(conversation: Conversation, event: AgentEvent): Promise<void> {
  if (event.type === 'approval_gate') await conversation.approve(event.gateId, { allow: true, by: 'test' })
}

const full = '[security]\nautonomy = "full"\n[limits]\nmax_tool_rounds = 100\n'

type Files = { readonly [path: string]: string }
type Around = { readonly config?: string; readonly more?: object }

async function scene(files: Files, work: (scene: Scene) => Promise<void>, { config = full, more }: Around = {}): Promise<void> {
  using at = place(config)
  for (const [path, text] of Object.entries(files)) {
    mkdirSync(dirname(join(at.cwd, path)), { recursive: true })
    writeFileSync(join(at.cwd, path), text)
  }
  const host = await at.host()
  try {
    await work({ at, host, ...(await opened(host, more)) })
  } finally {
    await host.close()
  }
}

const server = `require('http').createServer((_, to) => to.end(require('fs').readFileSync('page', 'utf8'))).listen(8123, '127.0.0.1', () => console.log('listening'))`
const curl = { command: 'curl -sS -m 5 http://127.0.0.1:8123/' }
const background = (command: string) => ({ command, background: true })
/** Says that it runs, and stays; the number tells it apart from all other processes of the machine. */
/** The sleeps of this process, up to a thousand: other sessions run the same test. */
const first = 1_000_000_000 + process.pid * 1_000
const tenFrom = (number: number) => `sleep ${String(first + number).slice(0, -1)}`
const stays = (seconds: number) => background(`echo up; exec sleep ${seconds}`)

/** The processes of this machine whose command line holds these words. */
const pidsOf = (words: string) =>
  readdirSync('/proc').filter((name) => {
    try {
      return readFileSync(`/proc/${name}/cmdline`, 'latin1').replaceAll('\0', ' ').includes(words)
    } catch {
      return false
    }
  })
const running = (words: string) => pidsOf(words).length

describe('what is refused', () => {
  real('what has no private view, and one more than the limit, fifty times', async () => {
    const config = `${full}max_background = 2\n`
    await scene(
      {},
      async ({ turn, call }) => {
        expect(await call('shell', { ...stays(first + 1), direct: true })).toContain('not with "direct"; nothing was run')
        const results = await turn(...Array.from({ length: isDeep ? 50 : 10 }, (_, at): Call => ['shell', stays(first + 2 + at)]))
        expect(results.slice(0, 2).map((text) => text.split('\n'))).toEqual(
          [1, 2].map((id) => ['up', `[job-${id} runs in the background; since 3]`]),
        )
        const full = `Failed: 2 commands run in the background already: job-1 (echo up; exec sleep ${first + 2}), job-2 (echo up; exec sleep ${first + 3});`
        expect(results.slice(2).filter((text) => !text.startsWith(full))).toEqual([])
        expect(results).toHaveLength(isDeep ? 50 : 10)
        expect(await call('shell_output', { id: 'job-9' })).toContain('unknown background job "job-9"; the jobs are: job-1 (')
      },
      { config },
    )
    expect(running(`sleep ${String(first).slice(0, -2)}`)).toBe(0)
  })

  real('without a sandbox', async () => {
    await scene(
      {},
      async ({ call }) => {
        const refused = await call('shell', stays(first + 100))
        expect(refused).toContain(
          'a command in the background needs a sandbox with a private view of the workspace: no sandbox was asked for',
        )
        expect(running(`sleep ${first + 100}`)).toBe(0)
      },
      { more: { sandbox: 'none' } },
    )
  })

  real('the host, another conversation and a command with hosts do not reach its ports, and nothing leads out of its network', async () => {
    await scene({ 'server.js': server, page: 'one' }, async ({ host, call }) => {
      expect(await call('shell', background('node server.js'))).toContain('listening')
      expect(await call('shell', curl)).toBe('one')
      await expect(fetch('http://127.0.0.1:8123/')).rejects.toThrow()
      const other = await opened(host)
      expect(await other.call('shell', curl)).toContain('exit code 7')
      if (needs('socat', 'perl')) {
        const network = ['example.org']
        expect(await call('shell', { command: `${curl.command} --noproxy '*'`, network })).toContain('exit code 7')
        expect(await call('shell', { ...stays(first + 150), network })).toStartWith(
          '[no other command reaches its ports: it may reach hosts,',
        )
      }
      const escapes = ['ip link set lo down', 'nsenter -t 1 -n true', 'unshare -n true', 'nsenter -t 1 -U true']
      const tries = escapes.map((words) => `${words} 2>/dev/null && echo "done: ${words}"`).join('; ')
      expect(await call('shell', { command: `${tries}; curl -sS http://127.0.0.1:8123/` })).toBe('one')
    })
  })
})

describe('a server and a watcher notice each edit, the first and the second', () => {
  real('a server, whatever made the edit', async () => {
    await scene({ 'server.js': server, page: 'one' }, async ({ call }) => {
      expect(await call('shell', background('node server.js'))).toBe('listening\n[job-1 runs in the background; since 10]')
      expect(await call('shell', curl)).toBe('one')
      await call('file_write', { path: 'page', content: 'two' })
      expect(await call('shell', curl)).toBe('two')
      await call('shell', { command: 'echo three > page' })
      expect(await call('shell', curl)).toBe('three')
      // The port is taken.
      expect(await call('shell', background('node server.js'))).toMatch(/EADDRINUSE[\s\S]*\[job-2 ended: exit code 1;/)
      expect(await call('shell_stop', { id: 'job-1' })).toBe('[job-1 ended: stopped (shell_stop); since 10]')
      expect(await call('shell', curl)).toContain('exit code 7')
    })
  })

  const edits = async ({ call, until }: Scene, path: string, sees: (word: string) => string) => {
    for (const [old, word] of [
      ['one', 'two'],
      ['two', 'three and more'],
    ] as const) {
      await call('file_edit', { path, old, new: word })
      await until('job-1', sees(word))
    }
  }

  real('node --watch', async () => {
    await scene({ 'a.js': `console.log('it is ' + require('./b.js'))`, 'b.js': 'module.exports = "one"' }, async (scene) => {
      await scene.call('shell', background('node --watch a.js'))
      await scene.until('job-1', 'Completed running')
      await edits(scene, 'b.js', (word) => `it is ${word}\n`)
    })
  })

  const tsc = join(import.meta.dir, `../../node_modules/@typescript/typescript-linux-${process.arch}/lib/tsc`)
  thorough('tsc --watch', async () => {
    const config = '{ "compilerOptions": { "lib": ["es5"], "noEmit": true, "types": [] }, "files": ["a.ts"] }'
    // It watches no folder that is near to the root of the machine.
    await scene({ 'some/where/tsconfig.json': config, 'some/where/a.ts': 'export const a: "it is one" = "it is"' }, async (scene) => {
      const libs = ['', 'es5.', 'decorators.', 'decorators.legacy.'].map((part) => `lib.${part}d.ts`)
      for (const name of ['tsc', ...libs]) copyFileSync(join(dirname(tsc), name), join(scene.at.cwd, 'some/where', name))
      await scene.call('shell', background('cd some/where && ./tsc --watch --preserveWatchOutput'))
      await scene.until('job-1', '"it is one"')
      await edits(scene, 'some/where/a.ts', (word) => `"it is ${word}"`)
    })
  })

  /** Stands for a bundler's own server: it watches folders with their folders, and tells the page through a stream which file to load again. */
  const reload = `
    const [fs, http] = [require('fs'), require('http')]
    const pages = new Set()
    const now = (name) => { try { return fs.readFileSync('src/' + name, 'utf8') } catch (error) { return error.code } }
    fs.watch('src', { recursive: true }, (_, name) => { for (const page of pages) page.write('data: ' + name + ' is ' + now(name) + '\\n\\n') })
    http.createServer((_, to) => { to.writeHead(200, { 'content-type': 'text/event-stream' }); to.write('data: here\\n\\n'); pages.add(to) })
      .listen(8123, '127.0.0.1', () => console.log('listening'))`
  thorough('a server that reloads a page, for files that were there, new ones and those of new folders', async () => {
    await scene({ 'server.js': reload, 'src/part/a.js': 'one' }, async (scene) => {
      const { call, until } = scene
      await call('shell', background('node server.js'))
      expect(await call('shell', background('curl -sSN http://127.0.0.1:8123/'))).toContain('data: here')
      const all = [
        ['part/a.js', 'two'],
        ['part/a.js', 'three'],
        ['b.js', 'new'],
        ['b.js', 'newer'],
        ['more/c.js', 'new'],
        ['more/c.js', 'newer'],
      ] as const
      for (const [name, content] of all) {
        await call('file_write', { path: `src/${name}`, content })
        await until('job-2', `data: ${name} is ${content}\n`)
      }
      await call('file_delete', { path: 'src/b.js' })
      await until('job-2', 'data: b.js is ENOENT')
    })
  })

  real('the own saves of a person, and an undo, too', async () => {
    await scene(
      { 'a.js': `console.log('it is ' + require('./src/b.js'))`, 'src/b.js': 'module.exports = "one"' },
      async ({ at, host, call, until }) => {
        await call('shell', background('node --watch a.js'))
        await until('job-1', 'Completed running')
        for (const word of ['two', 'three']) {
          writeFileSync(join(at.cwd, 'src/b.js'), `module.exports = "${word}"`)
          await until('job-1', `it is ${word}\n`)
        }
        // A folder that is new takes what is in it along.
        mkdirSync(join(at.cwd, 'src/new/er'), { recursive: true })
        writeFileSync(join(at.cwd, 'src/new/er/c.js'), 'module.exports = "of a new folder"')
        writeFileSync(join(at.cwd, 'src/b.js'), 'module.exports = require("./new/er/c.js")')
        await until('job-1', 'it is of a new folder\n')
        writeFileSync(join(at.cwd, 'src/b.js'), 'module.exports = "three"')
        await until('job-1', 'it is three\n')
        await call('shell', { command: `echo 'module.exports = "four"' > src/b.js` })
        await until('job-1', 'it is four\n')
        const { store } = await host.changes()
        expect(await store.undo(store.list()[0]?.id ?? '')).toMatchObject({ ok: true })
        await until('job-1', 'it is three\n')
      },
    )
  })

  real('what it changed itself stays as it made it, and that is said', async () => {
    await scene({ own: 'one' }, async ({ at, call, until }) => {
      await call('shell', background('echo mine > own; echo up; while :; do sleep 0.05; cat own; done'))
      await until('job-1', 'mine')
      await call('file_write', { path: 'own', content: 'two' })
      await until('job-1', '[not updated in the view of this command, which changed it itself: own]')
      expect(await call('shell_stop', { id: 'job-1' })).toContain('the command changed "own", and so did somebody else meanwhile')
      expect(readFileSync(join(at.cwd, 'own'), 'utf8')).toBe('two')
    })
  })
})

describe('what it changes', () => {
  const writer = background('echo a > made; echo up; until [ -e go ]; do sleep 0.02; done; echo b >> made; rm old; echo later; sleep 60')

  real('is handed over on request and at its end, is asked about as the command would be, and can be taken back', async () => {
    await scene({ old: 'x' }, async ({ at, host, call, until, conversation }) => {
      const read = (name: string) => (existsSync(join(at.cwd, name)) ? readFileSync(join(at.cwd, name), 'utf8') : undefined)
      await call('shell', writer)
      expect(read('made')).toBeUndefined()
      expect(await call('shell_output', { id: 'job-1', changes: true })).toContain('runs in the background')
      expect([read('made'), read('old')]).toEqual(['a\n', 'x'])
      await call('file_write', { path: 'go', content: '' })
      await until('job-1', 'later')
      await call('shell_stop', { id: 'job-1' })
      expect([read('made'), read('old'), read('go')]).toEqual(['a\nb\n', undefined, ''])
      const { store } = await host.changes()
      const shown = store.list().filter(({ about }) => about.tool === 'shell')
      expect(shown.map(({ about }) => about.command)).toEqual([writer.command, writer.command])
      expect(await store.undo(shown[0]?.id ?? '')).toMatchObject({ ok: true })
      expect([read('made'), read('old')]).toEqual(['a\n', 'x'])
      const run = conversation.runId()
      expect(await host.replay(run ?? '', [])).toMatchObject({ ended: true, runId: run })
      expect(running('echo a > made')).toBe(0)
    })
  })

  real('is dropped with a no, and with the conversation', async () => {
    const config = '[security]\nautonomy = "supervised"\n[limits]\nmax_tool_rounds = 100\n'
    await scene(
      {},
      async ({ at, host, conversation, call }) => {
        await call('shell', background('echo x > made; mkdir .git; echo up; sleep 60'))
        expect(existsSync(join(at.cwd, 'made'))).toBe(false)
        await conversation.close()
        expect(existsSync(join(at.cwd, 'made'))).toBe(false)
        expect((await host.changes()).store.list()).toEqual([])
      },
      { config },
    )
  })
})

describe('it ends', () => {
  real('with its process, also by kill -9, and its network too', async () => {
    using at = place(full)
    const script = join(import.meta.dir, '../support/background-child.ts')
    const words = [
      process.execPath,
      '--config=/dev/null',
      '--no-env-file',
      script,
      at.home,
      at.cwd,
      `setsid sleep ${first + 301} & echo up; sleep ${first + 302}`,
    ]
    const child = Bun.spawn(words, { stdio: ['ignore', 'pipe', 'inherit'] })
    const { value } = await child.stdout.getReader().read()
    expect(Buffer.from(value ?? []).toString()).toContain('job-1 runs in the background')
    // The trial of the sandbox has a folder of its own while it runs.
    const folders = readdirSync(join(at.home, 'run')).filter((name) => name.startsWith('sandbox-'))
    const marked = () => folders.flatMap((folder) => pidsOf(sandboxMark(join(at.home, 'run', folder))))
    const ours = marked()
    const parentOf = (pid: string) => /^PPid:\t(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, 'latin1'))?.[1] ?? ''
    const holders = pidsOf('echo $$; read line').filter((pid) => ours.includes(pid) || ours.includes(parentOf(pid)))
    expect([running(tenFrom(300)) > 1, holders.length]).toEqual([true, 2])
    child.kill('SIGKILL')
    await child.exited
    const left = () => [...pidsOf(tenFrom(300)), ...marked(), ...pidsOf('echo $$; read line').filter((pid) => holders.includes(pid))]
    while (left().length > 0) await Bun.sleep(5)
    // What it wrote goes with the next start.
    const views = () => readdirSync(join(at.home, 'changes')).filter((name) => name.startsWith('tx-'))
    expect(views().length).toBeGreaterThan(0)
    const host = await at.host()
    await (await opened(host)).call('time', {})
    expect(views()).toEqual([])
    await host.close()
  })

  thorough('with its budget', async () => {
    const config = `${full}max_conversation_tokens = 40000\n`
    await scene(
      {},
      async ({ conversation, call }) => {
        expect(await call('shell', stays(first + 401))).toContain('job-1 runs')
        while (conversation.ending()?.code === 'answered') await call('time', {})
        expect([conversation.ending()?.code, running(`sleep ${first + 401}`)]).toEqual(['budget', 0])
      },
      { config },
    )
  })

  real('with its conversation, and with the emergency stop', async () => {
    await scene({}, async ({ at, host, conversation, call }) => {
      await call('shell', background(`setsid sleep ${first + 201} & echo up; exec sleep ${first + 202}`))
      expect(running(tenFrom(200))).toBeGreaterThan(1)
      await conversation.close()
      expect(running(tenFrom(200))).toBe(0)
      const other = await opened(host)
      await other.call('shell', stays(first + 203))
      writeFileSync(join(at.home, 'ESTOP'), '')
      while (running(`sleep ${first + 203}`) > 0) await Bun.sleep(5)
    })
  })
})
