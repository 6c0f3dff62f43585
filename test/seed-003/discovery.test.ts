/** Discovery as an import: the names and shapes of seed 003, on Bun, and on Node from a bundle. */

import { afterAll, describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { z } from 'zod'
import {
  createEmbedder,
  createRulesDiscovery,
  createSkillDiscovery,
  createToolDiscovery,
  type Embedder,
  extractMarkdownLinks,
  getExtension,
  type IndexedTool,
  isExternalLink,
  zodToToolSchema,
} from '../../src/library/discovery.ts'
import { needs } from '../support/needs.ts'

const dir = mkdtempSync(join(tmpdir(), 'braidclaw-discovery-'))
afterAll(() => rmSync(dir, { recursive: true }))

function file(path: string, text: string | Uint8Array): string {
  mkdirSync(dirname(join(dir, path)), { recursive: true })
  writeFileSync(join(dir, path), text)
  return join(dir, path)
}

function tool(name: string, description: string, more: Partial<IndexedTool> = {}): IndexedTool {
  const schema = zodToToolSchema({
    name,
    description,
    schema: z.object({ path: z.string().describe('a file'), depth: z.number().default(1) }),
  })
  return { name, description, keywords: [], source: 'local', schema, ...more }
}

const tools = [
  tool('readFile', 'Read a file'),
  tool('bash', 'Execute any bash command'),
  tool('weather', 'Forecast for a city', { source: 'mcp', sourceUrl: 'https://a.example', keywords: ['rain'] }),
]

describe('tools', () => {
  test('are found by intent, listed and removed by source and name', async () => {
    const discovery = await createToolDiscovery()
    await discovery.indexBatch(tools)
    const [match] = await discovery.search('will it rain in the city')
    expect(match).toMatchObject({ tool: tools[2], ftsRank: expect.any(Number), why: { words: ['rain', 'city'] } })
    expect(match?.score).toBeGreaterThan(0)
    expect(await discovery.search('will it rain in the city', { source: 'local' })).toEqual([])
    expect((await discovery.search('command', { limit: 1 })).map((hit) => hit.tool.name)).toEqual(['bash'])
    expect(discovery.stats()).toEqual({ totalTools: 3, localTools: 2, mcpTools: 1, skillTools: 0, vectorSearchEnabled: false })
    expect(discovery.bySource('mcp')).toEqual([tools[2] as IndexedTool])
    discovery.remove('bash')
    discovery.clearSource('mcp')
    expect(discovery.all().map(({ name }) => name)).toEqual(['readFile'])
    discovery.close()
  })

  test('of one name and two servers are two tools; quotes, cycles and missing descriptions are no trouble', async () => {
    const discovery = await createToolDiscovery()
    const cyclic = { type: 'object' as const, properties: { loop: {} } }
    Object.assign(cyclic.properties.loop, cyclic)
    await discovery.index(tool('weather', 'Forecast', { source: 'mcp', sourceUrl: 'https://a.example' }))
    await discovery.index(tool('weather', 'Forecast', { source: 'mcp', sourceUrl: 'https://b.example' }))
    await discovery.index({
      ...tool(`o'clock "now"`, 'x'),
      description: undefined as never,
      schema: { name: 'x', description: '', parameters: cyclic },
    })
    expect(await discovery.search('forecast')).toHaveLength(2)
    expect((await discovery.search(`o'clock "now"`))[0]?.tool.name).toBe(`o'clock "now"`)
  })

  test('last in the file of dbPath; a file that is none of ours is refused and stays', async () => {
    const dbPath = join(dir, 'kept/tools.json')
    await (await createToolDiscovery({ dbPath })).indexBatch(tools)
    const again = await createToolDiscovery({ dbPath })
    expect((await again.search('rain'))[0]?.tool).toEqual(tools[2] as IndexedTool)
    again.remove('weather')
    expect((await createToolDiscovery({ dbPath })).all()).toHaveLength(2)
    const other = file('other.json', 'SQLite format 3\0')
    expect(createToolDiscovery({ dbPath: other })).rejects.toThrow(/other\.json" is not a file of this index/)
    expect(readFileSync(other, 'utf8')).toBe('SQLite format 3\0')
  })
})

describe('an embedder', () => {
  const asked: string[] = []
  const embedder = (model: string, vector: (text: string) => readonly number[], dimensions = 2): Embedder => ({
    model,
    dimensions,
    async embed(texts) {
      asked.push(...texts)
      return texts.map(vector)
    },
  })
  const meaning = (text: string) => (/bash|terminal/.test(text) ? [1, 0] : [0, 1])

  test('finds what shares no word; its vectors last, and those of another model are computed again', async () => {
    const dbPath = join(dir, 'vectors.json')
    const first = await createToolDiscovery({ dbPath, embedder: embedder('a', meaning) })
    await first.indexBatch(tools)
    const [match] = await first.search('open a terminal')
    expect([match?.tool.name, match?.vectorSimilarity]).toEqual(['bash', 1])
    asked.length = 0
    await (await createToolDiscovery({ dbPath, embedder: embedder('a', meaning) })).indexBatch(tools)
    expect(asked).toEqual([])
    const wider = await createToolDiscovery({ dbPath, embedder: embedder('b', () => [1, 2, 3], 3) })
    await wider.indexBatch(tools)
    expect([asked.length, wider.notices()]).toEqual([3, []])
  })

  test.each([
    ['NaN', () => [Number.NaN, 1], /not finite/],
    ['too many numbers', () => [1, 2, 3], /it has 3 numbers, not 2/],
    ['nothing', () => undefined as never, /it has 0 numbers, not 2/],
    [
      'an error',
      () => {
        throw new Error('no GPU')
      },
      /the embedder failed: no GPU/,
    ],
  ])('that gives %s is named, and words still find', async (_, vector, notice) => {
    const discovery = await createToolDiscovery({ embedder: embedder('bad', vector) })
    await discovery.indexBatch(tools)
    expect((await discovery.search('weather forecast'))[0]?.tool.name).toBe('weather')
    expect(discovery.notices().join()).toMatch(notice)
  })

  test('may be a server with /v1/embeddings: rows in any order, a key, and its refusals', async () => {
    const seen: { key: string | null; body: { model: string; input: string[] } }[] = []
    using server = Bun.serve({
      port: 0,
      async fetch(request) {
        const body = (await request.json()) as { model: string; input: string[] }
        seen.push({ key: request.headers.get('authorization'), body })
        if (body.model === 'gone') return new Response('no such model', { status: 404 })
        return Response.json({ data: body.input.map((text, index) => ({ index, embedding: meaning(text) })).reverse() })
      },
    })
    const baseUrl = `http://127.0.0.1:${server.port}/v1/`
    const remote = await createEmbedder({ baseUrl, model: 'm', apiKey: 'k' })
    expect([remote.dimensions, seen[0]?.key, seen[0]?.body.model]).toEqual([2, 'Bearer k', 'm'])
    const discovery = await createToolDiscovery({ embedder: remote })
    await discovery.indexBatch(tools)
    expect((await discovery.search('open a terminal'))[0]?.tool.name).toBe('bash')
    expect(createEmbedder({ baseUrl, model: 'gone' })).rejects.toThrow(/embeddings answered 404 .*no such model/)
  })
})

describe('skills', () => {
  file(
    'skills/pdf/SKILL.md',
    '---\nname: pdf\ndescription: Extract text from PDF files\n---\nSee [how forms work](forms.md), [gone](gone.md).\n',
  )
  file('skills/pdf/forms.md', '# Fill in a form\n\nUse the acrobat field names.\n')
  file(
    'skills/a/b/deep/SKILL.md',
    '---\nname: Deep Skill\ndescription: dig: a hole\nmetadata:\n  author: ann\nallowed-tools: shell file_read\n---\nbody',
  )
  file('skills/none/SKILL.md', '---\nname: none\n---\n')
  file('skills/node_modules/x/SKILL.md', '---\nname: x\ndescription: y\n---\n')

  test('are found, read leniently, and what is wrong is named', async () => {
    const discovery = await createSkillDiscovery({ skillsRoot: join(dir, 'skills') })
    expect(discovery.all().map(({ name }) => name)).toEqual(['pdf', 'Deep Skill'])
    expect(discovery.all()[1]).toMatchObject({
      description: 'dig: a hole',
      metadata: { author: 'ann' },
      allowedTools: ['shell', 'file_read'],
    })
    const [match] = await discovery.search('get the text out of a pdf')
    expect(match).toMatchObject({ skill: { name: 'pdf', location: join(dir, 'skills/pdf/SKILL.md'), skillDir: join(dir, 'skills/pdf') } })
    expect(await discovery.search('bake bread')).toEqual([])
    expect(await discovery.getBody('pdf')).toStartWith('See [how')
    expect(discovery.notices().map((line) => line.replace(`${dir}/`, ''))).toEqual([
      expect.stringMatching(/^skills\/none\/SKILL\.md is not a usable skill: it has no description$/),
      expect.stringMatching(/deep\/SKILL\.md: not valid YAML \(.*\); values with a colon were quoted$/),
      expect.stringMatching(/deep\/SKILL\.md: the name should have 1 to 64 characters/),
      expect.stringMatching(/deep\/SKILL\.md: the name should be that of the folder/),
      expect.stringMatching(/^pdf\/SKILL\.md:1: pdf\/gone\.md: .* it does not exist$/),
    ])
  })

  test('have references, which are searched, listed and read', async () => {
    const discovery = await createSkillDiscovery({ skillsRoot: join(dir, 'skills') })
    const [reference] = discovery.getReferences('pdf')
    const source = join(dir, 'skills/pdf/SKILL.md')
    expect(reference).toEqual({
      displayText: 'how forms work',
      relativePath: 'forms.md',
      absolutePath: join(dir, 'skills/pdf/forms.md'),
      source,
      lineNumber: 1,
    })
    const [match] = await discovery.searchReferences('acrobat field names')
    expect(match?.reference).toEqual(reference as never)
    expect(await discovery.getReferenceContent(match?.reference as never)).toStartWith('# Fill in')
    expect(
      await discovery.getReferenceContent({ ...(reference as NonNullable<typeof reference>), absolutePath: '/etc/passwd' }),
    ).toBeUndefined()
    rmSync(join(dir, 'skills/pdf/forms.md'))
    expect(await discovery.getReferenceContent(reference as never)).toBeUndefined()
    await discovery.refresh()
    expect(discovery.stats()).toEqual({ totalSkills: 2, totalReferences: 0, vectorSearchEnabled: false })
  })

  test('a folder that does not exist has none', async () => {
    expect((await createSkillDiscovery({ skillsRoot: join(dir, 'nothing') })).all()).toEqual([])
  })
})

describe('rules', () => {
  const root = join(dir, 'project')
  file(
    'project/AGENTS.md',
    'Root. [Releases](docs/release.md) [out](../secret.md) [round](docs/round.md) [big](big.md) [bin](bin.md) [link](link.md) [web](https://a.example/x.md)',
  )
  file('project/docs/release.md', '# Cutting a release\n\nTag the commit, then publish the tarball.\n')
  file('project/docs/round.md', '[back](/AGENTS.md) [itself](round.md) [release again](release.md#top)')
  file('project/big.md', 'x'.repeat(10_000_000))
  file('project/bin.md', new Uint8Array([0, 1, 2, 0]))
  file('secret.md', 'secret')
  file('project/web/AGENTS.md', 'Not this.')
  file('project/web/AGENTS.override.md', 'Web.[releases too](../docs/release.md)')
  file('project/web/ui/CLAUDE.md', 'Ui.')
  file('project/webby/AGENTS.md', 'Webby.')
  symlinkSync('/etc', join(root, 'outside'))
  symlinkSync('../secret.md', join(root, 'link.md'))

  test('come in three tiers: the root always, documents by intent, nested ones by path', async () => {
    const discovery = await createRulesDiscovery({ rootDir: root })
    expect(discovery.getRootRules()).toStartWith('Root.')
    expect((await discovery.searchReferences('how do I publish a release'))[0]?.reference).toMatchObject({
      displayText: 'Releases',
      lineNumber: 1,
    })
    expect(discovery.getRulesForPath('web/ui/button.ts').slice(1)).toEqual(['Web.[releases too](../docs/release.md)', 'Ui.'])
    expect(discovery.getRulesForPath(join(root, 'webby/a.ts')).slice(1)).toEqual(['Webby.'])
    expect(discovery.getRulesForPath(`${root}-other/web/a.ts`)).toEqual([])
    expect(discovery.getReferences('AGENTS.md').map(({ relativePath }) => relativePath)).toEqual([
      'docs/release.md',
      'docs/round.md',
      'big.md',
    ])
    expect(discovery.getReferences('web/AGENTS.override.md').map(({ displayText }) => displayText)).toEqual(['releases too'])
    expect(discovery.stats()).toEqual({ totalRules: 4, totalReferences: 5, vectorSearchEnabled: false })
  })

  test('links out, huge and binary documents are named, and a circle ends', async () => {
    const { notices } = await createRulesDiscovery({ rootDir: root })
    expect(notices()).toEqual([
      expect.stringMatching(/outside\/ is not searched: it leads out of/),
      'AGENTS.md:1: ../secret.md: "../secret.md" is not read: it leads out of the folder',
      'AGENTS.md:1: big.md: only the first 65536 of 10000000 bytes can be found',
      'AGENTS.md:1: bin.md: "bin.md" is not read: it is not text',
      'AGENTS.md:1: link.md: "link.md" is not read: it leads out of the folder',
    ])
  })

  test('of many links 200 are followed, and that is said', async () => {
    file('many/AGENTS.md', Array.from({ length: 250 }, (_, at) => `[d](d${at}.md)`).join('\n'))
    const notices = (await createRulesDiscovery({ rootDir: join(dir, 'many') })).notices()
    expect([notices.length, notices.at(-1)]).toEqual([201, 'only the first 200 links are followed'])
  })

  test('are found below a link to the folder', async () => {
    symlinkSync(root, join(dir, 'linked'))
    expect((await createRulesDiscovery({ rootDir: join(dir, 'linked') })).stats().totalRules).toBe(4)
  })

  test('share 32 KiB, and what is cut is said', async () => {
    file('long/AGENTS.md', `${'a'.repeat(99)}\n`.repeat(320))
    file('long/sub/AGENTS.md', `${'b'.repeat(99)}\n`.repeat(20))
    const discovery = await createRulesDiscovery({ rootDir: join(dir, 'long') })
    const [first = '', second = ''] = discovery.getRulesForPath('sub/x')
    expect([first.length, second.slice(0, 700).match(/b/g)?.length]).toEqual([32_000, 693])
    expect(second).toEndWith('and the rest of this one is left out]')
  })
})

test('Markdown links: text, path and line; no code, no pictures, no places on the network', () => {
  const text =
    'a [b](c.md) ![p](p.png)\n```\n[no](no.md)\n```\n`[no](no.md)` [d [e]](<f g.md> "t") [w](https://x.example) [m](mailto:a@b)\n[h](#top) [x](y.ts)'
  expect(extractMarkdownLinks(text)).toEqual([
    { displayText: 'b', relativePath: 'c.md', lineNumber: 1 },
    { displayText: 'd [e]', relativePath: 'f g.md', lineNumber: 5 },
    { displayText: 'h', relativePath: '#top', lineNumber: 6 },
    { displayText: 'x', relativePath: 'y.ts', lineNumber: 6 },
  ])
  expect(extractMarkdownLinks(text, { extensions: ['.ts'] }).map(({ displayText }) => displayText)).toEqual(['x'])
  expect(extractMarkdownLinks(text, { includeExternal: true, pathPattern: /^https/g }).map(({ displayText }) => displayText)).toEqual(['w'])
  for (const hostile of ['['.repeat(60_000), '`'.repeat(60_001), '[a]('.repeat(20_000), `[${'[]'.repeat(30_000)}`]) {
    const began = performance.now()
    expect(extractMarkdownLinks(hostile)).toEqual([])
    expect(performance.now() - began).toBeLessThan(3_000)
  }
  expect(['http://a', 'https://a', 'mailto:a', '//a', 'a/b', './http:', 'C:\\a'].map(isExternalLink)).toEqual([
    true,
    true,
    true,
    true,
    false,
    false,
    false,
  ])
  expect(['a.md', 'a.b/c', 'a.md#x', 'a.md?q=.y', '.env', 'a\\b.ts', ''].map(getExtension)).toEqual([
    '.md',
    '',
    '.md',
    '.md',
    '.env',
    '.ts',
    '',
  ])
})

test('a zod schema becomes the schema of a tool: defaults are not required, cycles are references', () => {
  const node: z.ZodType = z.lazy(() => z.object({ next: node.optional() }))
  const schema = z.object({
    path: z.string().describe('a file'),
    limit: z.number().int().default(5),
    tree: node,
    tag: z.string().optional(),
  })
  const made = zodToToolSchema({ name: 'read', description: 'Reads', schema })
  expect(made).toMatchObject({
    name: 'read',
    description: 'Reads',
    parameters: { type: 'object', required: ['path', 'tree'], properties: { path: { type: 'string', description: 'a file' } } },
  })
  expect(JSON.stringify(made)).toContain('$ref')
  expect(() => zodToToolSchema({ name: 'x', description: '', schema: z.string() })).toThrow(
    'tool "x": its parameters must be a schema of an object, such as z.object({ … })',
  )
  expect(() => zodToToolSchema({ name: 'x', description: '', schema: {} as never })).toThrow(
    'tool "x": its parameters must be a z.object of zod 4',
  )
})

test.if(needs('node'))('on Node it is imported in 30 ms and works the same', async () => {
  const entry = join(import.meta.dir, '../../src/library/discovery.ts')
  const built = await Bun.build({ entrypoints: [entry], target: 'node', format: 'esm', splitting: true, outdir: join(dir, 'node') })
  for (const output of built.outputs) expect(await output.text()).not.toMatch(/\bBun\.|["']bun:|\bTemporal\./)
  const bundle = join(dir, 'node/discovery.js')
  file('node/package.json', '{"type":"module"}')
  file('node/skills/pdf/SKILL.md', '---\nname: pdf\ndescription: Extract text from PDF files\n---\n')
  const program = `
    const began = process.cpuUsage()
    const { createSkillDiscovery } = await import(${JSON.stringify(bundle)})
    const { user, system } = process.cpuUsage(began)
    const took = (user + system) / 1000
    const skills = await createSkillDiscovery({ skillsRoot: 'skills' })
    console.log(JSON.stringify({ took, found: (await skills.search('read a pdf')).map(({ skill }) => skill.name) }))`
  const run = async () => {
    const child = Bun.spawn(['node', '--input-type=module', '-e', program], { cwd: join(dir, 'node'), stdout: 'pipe', stderr: 'inherit' })
    return JSON.parse(await new Response(child.stdout).text())
  }
  const runs = [await run(), await run(), await run(), await run(), await run()]
  for (const { found } of runs) expect(found).toEqual(['pdf'])
  expect(Math.min(...runs.map(({ took }) => took))).toBeLessThan(30)
})

test('every block of the page does what its comments say', async () => {
  const page = readFileSync(join(import.meta.dir, '../../docs/library.md'), 'utf8')
  const section = /^## Discovery$([\s\S]*?)(?=^## |$(?![\s\S]))/m.exec(page)?.[1] ?? ''
  const blocks = [...section.matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code)
  expect(blocks.length).toBe(4)
  for (const [at, code] of blocks.entries()) {
    const library = JSON.stringify(join(import.meta.dir, '../../src/library/discovery.ts'))
    const path = file(
      `page-${at}/block.ts`,
      code.replaceAll("'braidclaw/discovery'", library).replaceAll("'zod'", JSON.stringify(Bun.resolveSync('zod', import.meta.dir))),
    )
    const child = Bun.spawn([process.execPath, '--config=/dev/null', '--no-install', path], {
      cwd: dirname(path),
      env: { NO_COLOR: '1' },
      stdout: 'pipe',
    })
    const printed = (await new Response(child.stdout).text()).replace(/\s+/g, ' ').replaceAll(', }', ' }').trim()
    const promised = [...code.matchAll(/^\/\/=> (.*)$/gm)].map(([, text]) => text).join(' ')
    expect(printed).toBe(promised)
  }
})
