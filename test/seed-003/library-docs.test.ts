/** The sections of docs/library-data.md about relations, the cache, FunctionGemma, plain tools and configuration, run as they stand there, on Bun and on Node. */

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'

const root = join(import.meta.dir, '../..')
const page = readFileSync(join(root, 'docs/library-data.md'), 'utf8')
const dir = mkdtempSync(join(tmpdir(), 'library-docs-'))
afterAll(() => rmSync(dir, { recursive: true, force: true }))

const libraries = ['relations', 'cache', 'formatters', 'tools', 'config']
const built = await Bun.build({
  entrypoints: libraries.map((name) => join(root, `src/library/${name}.ts`)),
  target: 'node',
  outdir: join(dir, 'built'),
})

function blocks(section: string): readonly string[] {
  const [, text = ''] = page.split(`## ${section}\n`)
  const [own = ''] = text.split('\n## ')
  return [...own.matchAll(/```(?:ts)?\n([\s\S]*?)```/g)].map(([, block = '']) => block)
}

async function run(program: string, code: string): Promise<string> {
  const file = join(dir, `${Math.random().toString(36).slice(2)}.mjs`)
  writeFileSync(
    file,
    code.replace(/'braidclaw\/(\w+)'/g, (_, name) => JSON.stringify(join(dir, 'built', `${name}.js`))),
  )
  const child = Bun.spawn([program, file], { stdout: 'pipe', stderr: 'pipe', cwd: dir })
  const [stdout, stderr] = await Promise.all([child.stdout.text(), child.stderr.text(), child.exited])
  expect(stderr).toBe('')
  return stdout
}

test('what the library imports is built for Node and holds nothing of Bun', async () => {
  expect(built.success).toBe(true)
  for (const output of built.outputs) expect(await output.text()).not.toMatch(/\bBun\.|\bbun:/)
})

describe.if(needs('node'))('on Node and on Bun', () => {
  const node = Bun.which('node') ?? ''
  test.each(['Relations', 'Semantic cache', 'FunctionGemma', 'Plain tools'])(
    'the example of "%s" prints what stands there',
    async (section) => {
      const [code = '', printed] = blocks(section)
      expect(await run(node, code)).toBe(printed ?? '')
      const onBun = (await run(process.execPath, code)).replace(
        /\{\s+response: "(.*?)",\s+cached: (\w+),\s+\}/g,
        "{ response: '$1', cached: $2 }",
      )
      expect(onBun).toBe(printed ?? '')
    },
  )

  test('each import takes at most 30 ms on Node; that of the plain tools has zod in it, too', async () => {
    const timed = (name: string) =>
      `const began = performance.now(); await import('braidclaw/${name}'); console.log(performance.now() - began)`
    for (const name of libraries.filter((each) => each !== 'tools')) {
      const times: number[] = []
      for (let tries = 0; tries < 3; tries++) times.push(Number(await run(node, timed(name))))
      expect(Math.min(...times)).toBeLessThan(30)
    }
  })
})

test.if(needs('bwrap'))('the example of "braidclaw.config.ts" holds in a trusted folder', async () => {
  const [code = ''] = blocks('braidclaw.config.ts')
  using home = nest()
  home.file('braidclaw.config.ts', code)
  await home.run(['trust', home.workspace])
  const { stdout, stderr } = await home.run(['config', 'show'], { cwd: home.workspace, env: { NODE_ENV: 'production' } })
  expect(stderr).toBe('')
  for (const line of [
    'default_provider = "anthropic"',
    'default_model = "claude-sonnet-4-5"',
    'max_run_seconds = 28800',
    `${home.workspace}/secrets`,
  ])
    expect(stdout).toContain(line)
})
