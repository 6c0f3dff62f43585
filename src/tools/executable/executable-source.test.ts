/** Tests the folder as tools, described and run as real children without a sandbox; tests through the executable cover the sandbox. */

import { expect, test } from 'bun:test'
import { chmodSync, existsSync, readFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { context, createFolder, gone } from '../fixture.ts'
import { cleanEnvironment, type SpawnPlan, spawnPlain } from '../process.ts'
import { createSource, describe, type SourceOptions } from './executable-source.ts'
import { createStore } from './executable-store.ts'

/** Behaves like a sandbox without mounts. */
const spawnCopy = (plan: SpawnPlan) => {
  const [program = '', ...rest] = plan.argv
  return spawnPlain({ ...plan, argv: [plan.readablePaths?.find(({ path }) => path === program)?.from ?? program, ...rest] })
}

function stage(more: Partial<SourceOptions> = {}) {
  const at = createFolder()
  const plans: SpawnPlan[] = []
  const spawn = (plan: SpawnPlan) => {
    plans.push(plan)
    return spawnCopy(plan)
  }
  const around = { spawn, env: cleanEnvironment({ home: at.root }), workspace: at.root }
  const options: SourceOptions = {
    at: join(at.root, 'tools'),
    store: createStore(join(at.root, 'kept'), Date.now),
    around,
    builtIn: ['time'],
    untrusted: () => undefined,
    riskOf: () => 'medium',
    readOnly: false,
    maxOutputBytes: 4_096,
    ...more,
  }
  const tool = (file: string, body: string, described: object | string = { name: file.replace(/\..*/, '') }) => {
    const text =
      typeof described === 'string' ? described : JSON.stringify({ description: 'd', parameters: { type: 'object' }, ...described })
    at.put(`tools/${file}`, `#!/bin/sh\nif [ "$1" = --describe ]; then echo '${text}'; exit; fi\n${body}\n`)
    chmodSync(join(at.root, 'tools', file), 0o755)
  }
  const survey = async () => {
    const found = await look()
    if (!found.ok) throw new Error(found.why)
    return {
      tools: found.tools,
      names: found.tools.map(({ name }) => name),
      refused: found.refused.map(({ path, why }) => `${path.split('/').at(-1)}: ${why}`),
    }
  }
  const look = createSource(options)
  const described = () => plans.filter(({ argv }) => argv[1] === '--describe').length
  return { ...at, tool, survey, plans, described, options, around, [Symbol.dispose]: () => at[Symbol.dispose]() }
}

test('names that are taken, shared or no names, and schemas of no object, are refused by file', async () => {
  using at = stage()
  at.tool('clock.sh', '', { name: 'time' })
  at.tool('one.sh', '', { name: 'same' })
  at.tool('two.sh', '', { name: 'same' })
  at.tool('odd.sh', '', { name: 'no name' })
  at.tool('flat.sh', '', { name: 'flat', parameters: { type: 'string' } })
  at.tool('mute.sh', '', '')
  at.tool('good.sh', '')
  const { names, refused } = await at.survey()
  expect(names).toEqual(['good'])
  expect(refused).toEqual([
    'clock.sh: it calls itself "time", which is a built-in tool; give it another name',
    'flat.sh: it has "parameters" of type "string", not "object"; give {"type":"object","properties":{…}}',
    'mute.sh: it printed no JSON object for --describe but ""',
    expect.stringContaining('odd.sh: it calls itself "no name"; a name is'),
    expect.stringContaining(`one.sh: it calls itself "same", and so does ${at.root}/tools/two.sh`),
    expect.stringContaining('two.sh: it calls itself "same", and so does'),
  ])
})

test('one that fails, hangs or floods when asked what it is, is refused with why, and what it started is ended', async () => {
  using at = stage()
  at.put('fails', '#!/bin/sh\necho "no jq here" >&2; exit 4\n')
  at.put('floods', '#!/bin/sh\nwhile :; do echo 0123456789012345678901234567890123456789; done\n')
  at.put('hangs', `#!/bin/sh\nsleep 600 & echo $! >"${at.root}/pid"; wait\n`)
  at.put('binary', new Uint8Array([0x7f, 1, 2, 3]))
  const ask = (file: string, timeoutMs?: number) => {
    chmodSync(join(at.root, file), 0o755)
    const path = join(at.root, file)
    return describe(at.around, { path, real: path, copy: path }, timeoutMs)
  }
  expect(await ask('fails')).toEqual({ ok: false, why: '--describe ended with exit code 4: no jq here' })
  expect(await ask('floods')).toEqual({ ok: false, why: 'it printed more than 65536 bytes for --describe' })
  expect(await ask('binary')).toMatchObject({ ok: false, why: expect.stringContaining('cannot start') })
  expect(await ask('hangs', 300)).toEqual({ ok: false, why: 'it did not answer --describe within 0.3 s', hung: true })
  await gone(Number(readFileSync(join(at.root, 'pid'), 'utf8')))
})

test('one that hangs costs one turn: no process asks it again until its file changes, or when somebody asks for it', async () => {
  using at = stage({ timeoutMs: 300 })
  const hangs = () => at.put('tools/hangs', `#!/bin/sh\necho asked >>"${at.root}/log"; sleep 600\n`)
  hangs()
  chmodSync(join(at.root, 'tools/hangs'), 0o755)
  at.tool('good.sh', '')
  const asked = () => readFileSync(join(at.root, 'log'), 'utf8').split('\n').length - 1
  const next = async (askAgain = false) => {
    const store = createStore(join(at.root, 'kept'), Date.now)
    const found = await createSource({ ...at.options, store, askAgain })()
    if (!found.ok) throw new Error(found.why)
    return { names: found.tools.map(({ name }) => name), refused: found.refused, asked: asked() }
  }
  const why = `it did not answer --describe in time, and is asked again in an hour, or when its file changes; to ask it now: braidclaw tool describe ${at.root}/tools/hangs`
  const refused = { path: join(at.root, 'tools/hangs'), why }
  expect(await next()).toEqual({ names: ['good'], refused: [refused], asked: 1 })
  expect(await next()).toEqual({ names: ['good'], refused: [{ ...refused, known: true }], asked: 1 })
  expect((await next(true)).asked).toBe(2)
  hangs()
  expect((await next()).asked).toBe(3)
})

test('tools that hang do not keep the others waiting', async () => {
  using at = stage({ timeoutMs: 2_500 })
  for (const name of ['a', 'b', 'c', 'd']) {
    at.put(`tools/${name}`, '#!/bin/sh\nexec sleep 600\n')
    chmodSync(join(at.root, 'tools', name), 0o755)
  }
  at.tool('last.sh', '', { name: 'last' })
  const began = performance.now()
  const surveying = at.survey()
  while (at.described() < 5) await Bun.sleep(10)
  expect(performance.now() - began).toBeLessThan(2_500)
  expect((await surveying).names).toEqual(['last'])
})

test('being described, a tool cannot write the workspace; running, it may, unless nobody may', async () => {
  using at = stage()
  at.tool('one.sh', 'echo hi')
  const [tool] = (await at.survey()).tools
  await tool?.invoke({}, context())
  expect(at.plans.map(({ argv, readOnly }) => [argv[1], readOnly])).toEqual([
    ['--describe', true],
    ['{}', false],
  ])
  using strict = stage({ readOnly: true })
  strict.tool('one.sh', 'echo hi')
  await (await strict.survey()).tools[0]?.invoke({}, context())
  expect(strict.plans.at(-1)?.readOnly).toBe(true)
})

test('what was described is what runs, also when the file is another by then; and that is noticed', async () => {
  using at = stage()
  at.tool('one.sh', 'echo the first')
  const { tools } = await at.survey()
  expect(tools[0]?.changed()).toBeUndefined()
  at.tool('one.sh', 'echo the second')
  expect(tools[0]?.changed()).toContain('one.sh is another file than the one that was described')
  expect(await tools[0]?.invoke({}, context())).toMatchObject({ success: true, output: 'the first\n' })
  const again = await at.survey()
  expect(again.tools[0]?.sha256).not.toBe(tools[0]?.sha256)
  expect(await again.tools[0]?.invoke({}, context())).toMatchObject({ output: 'the second\n' })
  rmSync(join(at.root, 'tools/one.sh'))
  expect(again.tools[0]?.changed()).toContain('is gone')
  expect((await at.survey()).tools).toEqual([])
})

test('a tool that is no longer executable, or no longer trusted, has changed', async () => {
  const trust = { why: '' }
  using at = stage({ untrusted: () => trust.why || undefined })
  at.tool('one.sh', 'echo hi')
  const [tool] = (await at.survey()).tools
  trust.why = 'not any more'
  expect(tool?.changed()).toEndWith('one.sh: not any more')
  trust.why = ''
  chmodSync(join(at.root, 'tools/one.sh'), 0o644)
  expect(tool?.changed()).toContain('chmod +x')
})

test('unchanged files are described once and give the very same tools; a new one is found', async () => {
  using at = stage()
  at.tool('one.sh', '')
  const first = await at.survey()
  const second = await at.survey()
  expect(second.tools).toBe(first.tools)
  at.tool('two.sh', '')
  const third = await at.survey()
  expect([third.names, third.tools[0] === first.tools[0], at.described()]).toEqual([['one', 'two'], true, 2])
  const later = createSource(at.options)
  expect((await later()).ok).toBe(true)
  expect(at.described()).toBe(2)
})

test("risk is the operator's word, whatever the tool says", async () => {
  using at = stage({ riskOf: (name) => (name === 'known' ? 'low' : 'medium') })
  at.tool('known.sh', '')
  at.tool('sly.sh', '', { name: 'sly', risk: 'low' })
  expect((await at.survey()).tools.map(({ name, risk }) => [name, risk])).toEqual([
    ['known', 'low'],
    ['sly', 'medium'],
  ])
})

test('the arguments are one JSON text in $1, no shell sees them, and stdin is empty', async () => {
  using at = stage()
  at.tool('args.sh', `printf '%s|%s|' "$#" "$1"; cat; echo "dir $BRAIDCLAW_TOOL_DIR, home $HOME"; env | grep -c KEY`)
  const input = { a: `"'$(touch ${at.root}/pwned)\`id\`\n\\n ü`, b: [null, 1.5, { c: '' }] }
  const { tools } = await at.survey()
  const { output } = (await tools[0]?.invoke(input, context())) ?? { output: '' }
  expect(output).toBe(`1|${JSON.stringify(input)}|dir ${at.root}/tools, home ${at.root}\n0\n`)
  expect(existsSync(join(at.root, 'pwned'))).toBe(false)
})

test('arguments that no argument can hold are refused before anything runs', async () => {
  using at = stage()
  at.tool('size.sh', `printf %s "$1" | wc -c`)
  const { tools } = await at.survey()
  const fits = { a: 'x'.repeat(131_071 - '{"a":""}'.length) }
  expect(await tools[0]?.invoke(fits, context())).toMatchObject({ success: true, output: '131071\n' })
  const runs = at.plans.length
  expect(await tools[0]?.invoke({ a: `${fits.a}x` }, context())).toMatchObject({
    success: false,
    error: expect.stringContaining('the arguments have 131072 bytes'),
  })
  expect(at.plans.length).toBe(runs)
})

test('stdout is the result and stderr the error; the exit code says which; both are limited', async () => {
  using at = stage()
  at.tool('fails.sh', 'echo part; echo "why not" >&2; exit 7')
  at.tool('mute.sh', 'exit 1')
  at.tool('warns.sh', 'echo fine; echo careful >&2')
  at.tool('prints.sh', 'i=0; while [ $i -lt 3000 ]; do echo "line $i"; i=$((i+1)); done')
  const { tools } = await at.survey()
  const run = (name: string) => tools.find((tool) => tool.name === name)?.invoke({}, context())
  expect(await run('fails')).toMatchObject({ success: false, output: 'part\n', error: 'exit code 7: why not' })
  expect(await run('mute')).toMatchObject({ success: false, output: '', error: 'exit code 1' })
  expect(await run('warns')).toMatchObject({ success: true, output: 'fine\n', metadata: { exitCode: 0, stderr: 'careful' } })
  const printed = (await run('prints'))?.output ?? ''
  expect([
    Buffer.byteLength(printed) <= 4_096,
    printed.startsWith('line 0\n'),
    printed.endsWith('line 2999\n'),
    printed.includes('bytes omitted'),
  ]).toEqual([true, true, true, true])
})

test('a cancelled tool is ended with all that it started', async () => {
  using at = stage()
  at.tool('slow.sh', `echo begun; sleep 600 & echo $! >"${at.root}/pid"; wait`)
  const { tools } = await at.survey()
  const controller = new AbortController()
  const running = tools[0]?.invoke({}, context({ signal: controller.signal }))
  while (!existsSync(join(at.root, 'pid')) || readFileSync(join(at.root, 'pid'), 'utf8') === '') await Bun.sleep(2)
  controller.abort()
  expect(await running).toMatchObject({ success: false, output: 'begun\n' })
  await gone(Number(readFileSync(join(at.root, 'pid'), 'utf8')))
})

test('a run whose work the sandbox did not leave whole is a failure that says so', async () => {
  const undone = ['the set-group-ID bit of "x" was taken away']
  const spawn = async (plan: SpawnPlan) => ({ ...(await spawnCopy(plan)), ...(plan.argv[1] === '--describe' ? {} : { undone }) })
  using base = stage()
  using at = stage({ around: { ...base.around, spawn, workspace: base.root } })
  at.tool('maker.sh', 'echo made')
  const [maker] = (await at.survey()).tools
  expect(await maker?.invoke({}, context())).toMatchObject({ success: false, output: 'made\n', error: `exit code 0; ${undone[0]}` })
})

test('one program under two names is two tools, in this process and as the next one recalls them', async () => {
  using at = stage()
  const body = `#!/bin/sh\necho "{\\"name\\":\\"$(basename "$0")\\",\\"description\\":\\"d\\",\\"parameters\\":{\\"type\\":\\"object\\"}}"\n`
  for (const name of ['first', 'second']) {
    at.put(`tools/${name}`, body)
    chmodSync(join(at.root, 'tools', name), 0o755)
  }
  expect(await at.survey()).toMatchObject({ names: ['first', 'second'], refused: [] })
  expect(at.described()).toBe(2)
  const next = await createSource({ ...at.options, store: createStore(join(at.root, 'kept'), Date.now) })()
  expect(next.ok && next.tools.map(({ name }) => name)).toEqual(['first', 'second'])
  expect(at.described()).toBe(2)
})

test('a tool that says so takes its JSON on stdin, however long it is; any other word there is refused', async () => {
  using at = stage()
  at.tool('one.sh', 'echo "$# $(wc -c)"', { name: 'one', input: 'stdin' })
  at.tool('odd.sh', '', { name: 'odd', input: 'file' })
  const { tools, refused } = await at.survey()
  const text = 'x'.repeat(300_000)
  expect(await tools[0]?.invoke({ text }, context())).toMatchObject({ success: true, output: `0 ${text.length + 11}\n` })
  expect(refused).toEqual(['odd.sh: it has "input" "file"; leave it out, or write "stdin"'])
})
