/** A cold turn costs what it loads. What it loads is counted here, since the counts, unlike times, do not depend on the machine. */

import { expect, test } from 'bun:test'
import { existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { type Nest, nest } from '../support/cli.ts'
import { dialects, type Speech } from '../support/dialects.ts'
import { needs } from '../support/needs.ts'
import { until } from '../support/until.ts'
import { sends, startFake } from '../support/vendor-fake.ts'

const root = join(import.meta.dir, '../..')

type Loads = { readonly paths: readonly string[]; readonly bytes: number }

function loadsIn(home: Nest): Loads {
  const list = join(home.dir, 'loads')
  const lines = existsSync(list) ? readFileSync(list, 'utf8').trim().split('\n') : []
  const files = lines.map((line) => line.split(' '))
  return { paths: files.map(([path = '']) => path), bytes: files.reduce((sum, [, bytes]) => sum + Number(bytes), 0) }
}

/** Runs one turn from the sources. The model answers when `thought` resolves, or at once. */
async function turn(home: Nest, speeches: readonly Speech[], thought?: () => Promise<unknown>): Promise<Loads> {
  const [dialect] = dialects
  const fake = startFake(async (_, at) => {
    await thought?.()
    return sends(dialect?.events(speeches[at] ?? {}) ?? [])
  })
  const list = join(home.dir, 'loads')
  rmSync(list, { force: true })
  const bun = [process.execPath, '--config=/dev/null', '--no-env-file', `--preload=${root}/test/support/count-loads.ts`]
  try {
    const child = Bun.spawn([...bun, join(root, 'src/main.ts'), 'agent', '-m', 'hello'], {
      cwd: home.workspace,
      env: {
        ...home.env,
        ...(thought ? {} : { QUICK_MODEL: '1' }),
        OLLAMA_HOST: fake.url,
        BRAIDCLAW_MODEL: 'ollama/llama3.2:1b',
        LOADS_TO: list,
      },
      stdio: ['ignore', 'ignore', 'ignore'],
    })
    expect(await child.exited).toBe(0)
  } finally {
    fake.stop()
  }
  return loadsIn(home)
}

const text = [{ text: ['Hello.'] }]
const read = [{ calls: [{ id: 'c1', name: 'file_read', args: ['{"path":"notes.txt"}'] }] }, ...text]

test.if(needs('bwrap'))('a turn of text loads few files and few bytes', async () => {
  using home = nest()
  await turn(home, text)
  // The first turn of a home also tries the sandbox, and without bubblewrap each turn does.
  const { paths, bytes } = await turn(home, text)
  expect(paths).toContain('src/main.ts')
  expect(paths.length).toBeLessThanOrEqual(217)
  expect(bytes).toBeLessThanOrEqual(1_073_000)
  const unneeded = /^src\/(control|dashboard|sandbox\/bubblewrap|security\/command\/judge)|tool-executor|line-editor/
  expect(paths.filter((path) => unneeded.test(path))).toEqual([])
})

test.if(needs('bwrap'))('a turn that reads a file loads the tools, and no sandbox', async () => {
  using home = nest()
  home.file('notes.txt', 'milk')
  await turn(home, text)
  const { paths } = await turn(home, read)
  expect(paths).toContain('src/host/toolset/tool-executor.ts')
  expect(paths.length).toBeLessThanOrEqual(286)
  expect(paths.filter((path) => path.startsWith('src/sandbox/bubblewrap/'))).toEqual([])
})

test.if(needs('bwrap'))('a turn that changes files loads the rules for a structure only where there are some', async () => {
  using home = nest()
  await Bun.write(join(home.home, '.braidclaw/config.toml'), '[security]\nautonomy = "full"\n')
  const write = [{ calls: [{ id: 'c1', name: 'shell', args: ['{"command":"echo x >> a.md"}'] }] }, ...text]
  const rules = ({ paths }: Loads) => paths.filter((path) => path.includes('structure'))
  expect(rules(await turn(home, write))).toEqual([])
  home.file('.braidclaw/structure.toml', '')
  expect(rules(await turn(home, write)).length).toBeGreaterThan(3)
})

test('while the model thinks, the tools, the gate and the judge of commands are loaded', async () => {
  using home = nest()
  const judge = 'src/security/command/judge.ts'
  const { paths } = await turn(home, text, () => until(() => loadsIn(home).paths.includes(judge)))
  expect(paths).toContain('src/host/toolset/tool-executor.ts')
  expect(paths).toContain(judge)
})
