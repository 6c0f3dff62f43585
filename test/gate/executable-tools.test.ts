/** Executables as tools, through the real executable: who is offered what, what is refused, and the three examples. */

import { test as always, expect } from 'bun:test'
import { chmodSync, cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fixedPath } from '../../src/tools/process.ts'
import { minimumConfig, type Nest, nest } from '../support/cli.ts'
import { needs } from '../support/needs.ts'
import { isDeep } from '../support/tier.ts'
import { alone, call, refused, scripted } from '../support/turns.ts'
import { until } from '../support/until.ts'

const test = always.if(needs('bwrap', 'jq', 'python3'))
const inDepth = isDeep ? test : () => {}

const examples = join(import.meta.dir, '../../examples/tools')

function tool(folder: string, name: string, body = 'echo done', described: object = {}): string {
  mkdirSync(folder, { recursive: true })
  const path = join(folder, `${name}.sh`)
  const text = JSON.stringify({ name, description: `The ${name} tool.`, parameters: { type: 'object', properties: {} }, ...described })
  writeFileSync(path, `#!/bin/sh\nif [ "$1" = --describe ]; then cat <<'J'\n${text}\nJ\nexit; fi\n${body}\n`)
  chmodSync(path, 0o755)
  return path
}

const own = (at: Nest) => join(at.home, '.braidclaw/tools')

/** One turn of a model that calls this tool and repeats what it was told. */
function turn(at: Nest, name: string, args: readonly string[] = [], more: { readonly [name: string]: string } = {}) {
  const { env } = scripted(at, [call(name, {}), { text: 'told: {{last_tool_result}}' }])
  return at.run(['agent', '-m', 'go', '--approve-all-medium', ...args], { env: { ...env, ...more }, through: alone })
}

const run = (at: Nest, words: readonly string[], json: object = {}) =>
  at.run(['tool', 'run', ...words, '--json', JSON.stringify(json)], { through: alone })

const yes = '--approve-all-medium'

test('an executable that nobody named is not offered to a model, and does not run when it asks', async () => {
  using at = nest()
  at.config('\n')
  tool(own(at), 'deploy', 'touch deployed')
  const { code, stderr } = await turn(at, 'deploy')
  expect(code).toBe(3)
  expect(stderr).toContain('unknown tool "deploy"')
  expect(existsSync(join(at.workspace, 'deployed.txt'))).toBe(false)
  expect((await at.run(['tool', 'list'])).stdout).toMatch(/^- deploy .*\(not in tools\.executables\)$/m)
})

test('named in the configuration it is, besides the built-in ones; what else lies there is not', async () => {
  using at = nest()
  at.config(`${minimumConfig}\n[tools]\nexecutables = ["deploy"]\n`)
  tool(own(at), 'deploy', 'touch deployed.txt; echo deployed')
  tool(own(at), 'wipe', 'touch wiped')
  const { code, stderr } = await turn(at, 'deploy')
  expect([code, stderr.includes('deployed') || existsSync(join(at.workspace, 'deployed.txt'))]).toEqual([0, true])
  expect((await turn(at, 'wipe')).code).toBe(3)
  expect(existsSync(join(at.workspace, 'wiped'))).toBe(false)
  const { stdout } = await at.run(['tool', 'list'])
  expect(stdout).toMatch(/^ {2}deploy /m)
  expect(stdout).toMatch(/^- wipe /m)
})

test('without a yes it does not run, and the receipt says so; a yes to one file is none to another', async () => {
  using at = nest()
  at.config('\n[tools]\nexecutables = ["deploy"]\n')
  tool(own(at), 'deploy', 'touch deployed-v1')
  const { env } = scripted(at, [call('deploy', {}), { text: 'no' }])
  const asked = await at.run(['agent', '-m', 'go'], { env, through: alone })
  expect(asked.code).toBe(4)
  const [id] = /run_\w+\/[\w-]+/.exec(asked.stderr) ?? ['none']
  expect((await at.run(['approvals', 'allow', id])).code).toBe(0)
  tool(own(at), 'deploy', 'touch deployed-v2')
  const again = scripted(at, [call('deploy', {}), { text: 'again' }])
  expect((await at.run(['agent', '-c', '-m', 'go on'], { ...again, through: alone })).code).toBe(4)
  expect(['deployed-v1', 'deployed-v2'].filter((name) => existsSync(join(at.workspace, name)))).toEqual([])
})

test('a tool in the workspace, or linked to or from it, is refused until its folder is trusted', async () => {
  using at = nest()
  const inside = join(at.workspace, 'tools')
  tool(inside, 'mine')
  mkdirSync(own(at), { recursive: true })
  symlinkSync(join(inside, 'mine.sh'), join(own(at), 'linked'))
  for (const words of [['mine', '--tools', inside], ['mine']]) {
    const { code, stderr } = await run(at, [...words, yes])
    expect(code).toBe(3)
    expect(stderr).toContain("model's own tools may write, in the workspace; move it out, or run: braidclaw trust")
  }
  await at.run(['trust', inside])
  expect(await run(at, ['mine', '--tools', inside, yes])).toMatchObject({ code: 0, stdout: 'done\n' })
})

inDepth('a link to a tool elsewhere runs what it leads to, however it is spelled', async () => {
  using at = nest()
  const real = tool(join(at.home, 'elsewhere'), 'linked', 'echo "ran $(basename "$0")"')
  const folder = join(at.home, 'links')
  mkdirSync(folder)
  for (const target of [real, '../elsewhere/linked.sh']) {
    symlinkSync(target, join(folder, 'it'))
    expect(await run(at, ['linked', '--tools', folder, yes])).toMatchObject({ code: 0, stdout: 'ran it\n' })
    rmSync(join(folder, 'it'))
  }
})

inDepth('a folder that holds our home, the workspace or the home of the user is no folder for tools', async () => {
  using at = nest()
  tool(at.home, 'mine')
  tool(join(at.home, '.braidclaw'), 'other')
  for (const folder of [at.home, join(at.home, '.braidclaw')])
    expect((await run(at, ['mine', '--tools', folder, yes])).stderr).toContain('a tool may read its folder, and')
})

inDepth('what is broken is said by name, once, and spoils nothing else', async () => {
  using at = nest()
  at.config('\n[tools]\nexecutables = ["good"]\n')
  tool(own(at), 'good')
  tool(own(at), 'bad', '', { name: 'bad name' })
  tool(own(at), 'time')
  writeFileSync(join(own(at), 'plain.sh'), '#!/bin/sh\n')
  const { code, stderr } = await turn(at, 'good')
  expect(code).toBe(0)
  for (const name of ['bad.sh', 'time.sh', 'plain.sh']) expect(stderr.split(`${name} is not offered`).length).toBe(2)
  const described = await at.run(['tool', 'describe', '--json'])
  expect(described.code).toBe(1)
  const { tools, broken } = JSON.parse(described.stdout)
  expect([tools.map(({ name }: { name: string }) => name), broken.length]).toEqual([['good'], 3])
  expect((await at.run(['tool', 'describe', join(own(at), 'good.sh')])).code).toBe(0)
  refused(await at.run(['tool', 'describe', join(at.dir, 'none')]), 1, 'the folder does not exist')
})

test('what --tools names wrongly ends the command with 2, saying what and where', async () => {
  using at = nest()
  const ops = join(at.dir, 'ops')
  tool(join(ops, 'skills'), 'deploy')
  const list = join(ops, 'tools.json')
  const wrong = async (content: string, says: string) => {
    writeFileSync(list, content)
    refused(await at.run(['tool', 'list', '--tools', list]), 2, `error: --tools ${list}: `, says)
  }
  await wrong('{', 'not a JSON array')
  await wrong('[{"name":"../../bin/sh"}]', 'no tool "../../bin/sh"')
  if (isDeep) {
    await wrong('[{}]', 'entry 1 has no "name"')
    await wrong('[{"name":"deploy"},{"name":"deploy"}]', 'names "deploy" twice')
    await wrong('[{"name":"deploy","parameters":{"type":"string"}}]', 'not a JSON Schema of an object')
    await wrong('[{"name":"deply"}]', 'did you mean "deploy"')
  }
  refused(await at.run(['tool', 'list', '--tools', join(at.dir, 'none')]), 2, 'the file or folder does not exist')
})

inDepth(
  'a list allows what it names, from the folder beside it or that of the environment; the own schema wins, and that is said',
  async () => {
    using at = nest()
    const ops = join(at.dir, 'ops')
    tool(join(ops, 'skills'), 'deploy', 'echo beside')
    tool(join(ops, 'skills'), 'wipe')
    tool(join(at.dir, 'elsewhere'), 'deploy', 'echo elsewhere')
    const list = join(ops, 'tools.json')
    const parameters = { type: 'object', properties: { where: { type: 'string' } } }
    writeFileSync(
      list,
      JSON.stringify([
        { name: 'deploy', description: 'x', input_schema: parameters },
        { name: 'time', description: 'y' },
      ]),
    )
    const { stdout, stderr } = await at.run(['tool', 'list', '--tools', list, '--json'])
    const rows: { name: string; active: boolean; parameters: object }[] = JSON.parse(stdout)
    expect(rows.map(({ name, active }) => [name, active])).toEqual([
      ['time', true],
      ['deploy', true],
    ])
    expect(rows[1]?.parameters).toEqual({ type: 'object', properties: {} })
    expect(stderr).toContain('describes other parameters for "deploy" than the list of tools does; its own are used')
    expect((await run(at, ['deploy', '--tools', list, yes])).stdout).toBe('beside\n')
    expect((await run(at, ['wipe', '--tools', list, yes])).code).toBe(3)
    expect((await run(at, ['file_list', '--tools', list])).code).toBe(3)
    for (const name of ['BRAIDCLAW_TOOLS_DIR', 'SHELLCLAW_SKILLS_DIR']) {
      const env = { [name]: join(at.dir, 'elsewhere') }
      expect((await at.run(['tool', 'run', 'deploy', '--tools', list, yes, '--json', '{}'], { env })).stdout).toBe('elsewhere\n')
    }
  },
)

test('the operator counts a tool as low, and only the operator', async () => {
  using at = nest()
  at.config('\n[security]\nallow_tools = ["known"]\n')
  tool(own(at), 'known', 'echo ran', { risk: 'high' })
  tool(own(at), 'sly', 'echo ran', { risk: 'low' })
  expect(await run(at, ['known'])).toMatchObject({ code: 0, stdout: 'ran\n' })
  expect((await run(at, ['sly'])).code).toBe(4)
  const { stdout } = await at.run(['policy', 'explain', '--tool', 'sly', '--json'])
  expect(JSON.parse(stdout)).toMatchObject({ verdict: 'ask', risk: 'medium' })
})

test('one that does not end in time is ended with its children, and the receipt says failed', async () => {
  using at = nest()
  at.config('\n[limits]\ntool_timeout_s = 0.5\n')
  tool(own(at), 'slow', 'sleep 600 & sleep 600; echo late')
  refused(await run(at, ['slow', yes]), 1, 'timed out after 0.5 s')
  const [receipt = ''] = readFileSync(join(at.home, '.braidclaw/tool_receipts.log'), 'utf8').split('\n')
  expect(JSON.parse(receipt)).toMatchObject({ tool: 'slow', status: 'failed', risk: 'medium' })
  expect(await at.run(['receipt', 'verify'])).toMatchObject({ code: 0 })
})

test('a conversation notices between two turns that a tool was changed and another came', async () => {
  using at = nest()
  at.config('\n[tools]\nexecutables = ["one", "two"]\n[security]\nautonomy = "full"\n')
  tool(own(at), 'one', 'touch begun; while [ ! -e "$BRAIDCLAW_TOOL_DIR/go" ]; do sleep 0.01; done; echo one as it was')
  const both = {
    tool_calls: [
      { name: 'one', arguments: {} },
      { name: 'two', arguments: {} },
    ],
  }
  const { env } = scripted(at, [call('one', {}), { text: '1: {{last_tool_result}} :1' }, both, { text: '2: {{last_tool_result}} :2' }])
  const views = join(at.home, '.braidclaw/changes')
  mkdirSync(views, { recursive: true })
  const change = async () => {
    await until(() => readdirSync(views, { recursive: true }).some((path) => String(path).endsWith('/up/begun')))
    tool(own(at), 'one', 'echo one changed >>said')
    tool(own(at), 'two', 'echo the second')
    writeFileSync(join(own(at), 'go'), '')
  }
  const [{ stdout }] = await Promise.all([
    at.terminal(
      ['agent'],
      [
        ['> ', 'first\r'],
        [':1', ''],
        ['> ', 'second\r'],
        [':2', ''],
        ['> ', '/exit\r'],
      ],
      { env },
    ),
    change(),
  ])
  expect(stdout).toContain('1: one as it was')
  expect(stdout).toContain('2: the second')
  expect(readFileSync(join(at.workspace, 'said'), 'utf8')).toBe('one changed\n')
})

const languages = ['sh', 'python', 'ts'] as const

test.each(isDeep ? languages : languages.slice(0, 1))(
  'tool new --lang %s writes one that works as it stands, or says what it lacks',
  async (lang) => {
    using at = nest()
    const { code, stdout, stderr } = await at.run(['tool', 'new', 'shout', '--lang', lang])
    expect(code).toBe(0)
    const path = stdout.trim()
    const PATH = `${join(import.meta.dir, '../../node_modules/.bin')}:${fixedPath}`
    const start = (argument: string) => Bun.spawnSync([path, argument], { env: { PATH } })
    expect(JSON.parse(start('--describe').stdout.toString())).toMatchObject({
      name: 'shout',
      parameters: { type: 'object', required: ['text'] },
    })
    expect(start('{"text":"quiet, \\"please\\""}').stdout.toString()).toBe('QUIET, "PLEASE"\n')
    expect([start('{"txt":1}').exitCode === 0, start('{"txt":1}').stderr.toString()]).toEqual([false, expect.stringContaining('shout')])
    const ran = await run(at, ['shout', yes], { text: 'hi' })
    expect([stderr.includes('note: it does not run yet: '), ran.stdout]).toEqual(ran.code === 0 ? [false, 'HI\n'] : [true, ''])
    if (lang !== 'ts') expect(ran.code).toBe(0)
    refused(await at.run(['tool', 'new', 'shout', '--lang', lang]), 1, 'is there already')
    refused(await at.run(['tool', 'new', '../x']), 2, 'is not a valid tool name')
    refused(await at.run(['tool', 'new', 'shell']), 2, 'is a built-in tool')
  },
)

inDepth('the three examples describe themselves, answer and fail as they should', async () => {
  using at = nest()
  cpSync(examples, own(at), { recursive: true })
  at.file('numbers.csv', 'day,mm\nmon,1\ntue,4\nwed,\nthu,7\n')
  expect(await run(at, ['wordcount', yes], { path: 'numbers.csv' })).toMatchObject({ code: 0, stdout: '5 lines, 5 words, 30 bytes\n' })
  expect(await run(at, ['wordcount', yes], { text: 'one two\nthree' })).toMatchObject({ stdout: '1 lines, 3 words, 13 bytes\n' })
  refused(await run(at, ['wordcount', yes], { path: 'none' }), 1, 'there is no file "none"')
  expect(JSON.parse((await run(at, ['csv_stats', yes], { path: 'numbers.csv', column: 'mm' })).stdout)).toEqual({
    count: 3,
    min: 1,
    mean: 4,
    max: 7,
  })
  refused(await run(at, ['csv_stats', yes], { path: 'numbers.csv', column: 'cm' }), 1, 'no column "cm" in numbers.csv; there are: day, mm')
  refused(await run(at, ['days_between', yes], { from: '2026-01-01', to: 'tomorrow' }), 3, 'schema.invalid')
  if (Bun.which('node', { PATH: fixedPath }) === null) return
  expect((await run(at, ['days_between', yes], { from: '2026-01-01', to: '2026-03-01' })).stdout).toBe('59 days\n')
  refused(await run(at, ['days_between', yes], { from: '2026-02-30', to: '2026-03-01' }), 1, '"2026-02-30" is no date')
})
