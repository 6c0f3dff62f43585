import { describe, expect, test } from 'bun:test'
import { chmodSync, linkSync, mkdirSync, symlinkSync, truncateSync, unlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import fc from 'fast-check'
import { createFixture } from './fixture.ts'
import { openWorkspace } from './workspace.ts'

const maxBytes = 65_536

describe('what is refused', () => {
  test('an outside path gets the same answer whether it exists or not', () => {
    using fixture = createFixture()
    const { workspace, outside } = fixture
    const there = workspace.readText(join(outside, 'secret.txt'), { maxBytes })
    const missing = workspace.readText(join(outside, 'nothing.txt'), { maxBytes })
    expect(there).toEqual({ ok: false, denied: 'workspace_only', message: 'it is outside the workspace' })
    expect(missing).toEqual(there)
  })

  test('dots do not lead out', () => {
    using fixture = createFixture()
    const { workspace } = fixture
    for (const path of ['../outside/secret.txt', 'a/../../outside/secret.txt', './..', '/etc/passwd', '//etc/passwd'])
      expect(workspace.readText(path, { maxBytes })).toMatchObject({ ok: false, denied: 'workspace_only' })
  })

  test('a symbolic link out is refused in the same words whether its end exists, is missing, is below a file or a dangling chain', () => {
    using fixture = createFixture()
    const { workspace, root, outside } = fixture
    const answers = [
      join(outside, 'secret.txt'),
      join(outside, 'nothing.txt'),
      join(outside, 'secret.txt/below'),
      join(outside, 'no/such/folder'),
    ].map((end) => {
      symlinkSync(end, join(root, 'link'))
      const answer = workspace.readText('link', { maxBytes })
      unlinkSync(join(root, 'link'))
      return JSON.stringify(answer)
    })
    expect(new Set(answers).size).toBe(1)
    expect(answers[0]).toContain('"denied":"workspace_only"')
  })

  test('a file below a symbolic link to an outside folder is refused, existing or not', () => {
    using fixture = createFixture()
    const { workspace, root, outside } = fixture
    symlinkSync(outside, join(root, 'door'))
    const there = workspace.readText('door/secret.txt', { maxBytes })
    const missing = workspace.readText('door/nothing.txt', { maxBytes })
    expect(there).toMatchObject({ ok: false, denied: 'workspace_only' })
    expect(JSON.stringify(missing).replace('nothing', 'secret')).toBe(JSON.stringify(there))
    expect(workspace.list('door', { maxEntries: 10 })).toMatchObject({ ok: false, denied: 'workspace_only' })
    expect(workspace.stat('door/secret.txt')).toMatchObject({ ok: false, denied: 'workspace_only' })
  })

  test('a forbidden name is refused through a link that hides it', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    writeFileSync(join(root, 'forbidden'), 'x')
    symlinkSync('forbidden', join(root, 'harmless'))
    expect(workspace.readText('harmless', { maxBytes })).toMatchObject({ ok: false, denied: 'forbidden_paths' })
  })

  test('a named pipe without a writer neither blocks nor is read', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    Bun.spawnSync(['mkfifo', join(root, 'pipe')])
    for (const answer of [
      workspace.readText('pipe', { maxBytes }),
      workspace.readBytes('pipe', { maxBytes }),
      workspace.scan('pipe', { maxLineBytes: 100, onLine: () => true }),
      workspace.editText('pipe', { find: 'a', put: 'b' }),
    ])
      expect(answer).toMatchObject({ ok: false, message: '"pipe" is a named pipe (FIFO), not a regular file' })
    expect(workspace.writeText('pipe', 'x')).toMatchObject({ ok: false, message: expect.stringContaining('a named pipe') })
  })

  test('devices, sockets and folders are refused by name', () => {
    using fixture = createFixture()
    const { base, root } = fixture
    const open = openWorkspace({ root, check: () => ({ ok: true }) })
    expect(open.readText('/dev/null', { maxBytes })).toMatchObject({ ok: false, message: expect.stringContaining('a character device') })
    expect(open.writeText('/dev/null', 'x')).toMatchObject({ ok: false, message: expect.stringContaining('a character device') })
    using server = Bun.listen({ unix: join(base, 'sock'), socket: { data() {} } })
    expect(open.readText(join(base, 'sock'), { maxBytes })).toMatchObject({ ok: false, message: expect.stringContaining('a socket') })
    expect(open.readText('.', { maxBytes })).toMatchObject({ ok: false, message: expect.stringContaining('a folder') })
    server.stop()
  })

  test('a NUL, an empty path, a loop and a path below a file have their own words', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    symlinkSync('loop', join(root, 'loop'))
    writeFileSync(join(root, 'file'), 'x')
    const message = (path: string) => {
      const answer = workspace.readText(path, { maxBytes })
      return answer.ok ? '' : answer.message
    }
    expect(message('a\0b')).toContain('not a valid path')
    expect(message('')).toContain('empty')
    expect(message('loop')).toContain('go round in circles')
    expect(message('file/below')).toContain('is a file, not a folder')
    expect(message('x'.repeat(300))).toContain('too long')
    expect(message('no/such/file')).toBe('"no/such/file" does not exist; the nearest folder that does is "."')
  })

  test('random paths never show a byte from outside', () => {
    using fixture = createFixture()
    const { workspace, root, outside } = fixture
    mkdirSync(join(root, 'a'))
    symlinkSync(outside, join(root, 'a/up'))
    symlinkSync('../..', join(root, 'a/dots'))
    const piece = fc.constantFrom('a', 'up', 'dots', '..', '.', 'outside', 'inside', 'secret.txt', '', outside, root)
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 7 }), (pieces) => {
        const answer = workspace.readText(pieces.join('/'), { maxBytes })
        expect(answer.ok && answer.text).not.toBe('OUTSIDE')
      }),
      { numRuns: 2_000 },
    )
  })

  test('a sparse 1 GiB file is refused at its first NUL', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    writeFileSync(join(root, 'sparse'), '')
    truncateSync(join(root, 'sparse'), 1024 ** 3)
    const message = expect.stringContaining('NUL byte at offset 0 of 1073741824 bytes')
    expect(workspace.readText('sparse', { maxBytes })).toMatchObject({ ok: false, message })
    expect(workspace.readBytes('sparse', { maxBytes })).toMatchObject({ ok: false, message: expect.stringContaining('too large') })
    expect(workspace.scan('sparse', { maxLineBytes: 100, onLine: () => true })).toMatchObject({ ok: true, complete: false })
    expect(workspace.editText('sparse', { find: 'a', put: 'b' })).toMatchObject({
      ok: false,
      message: expect.stringContaining('too large'),
    })
  })
})

describe('reading', () => {
  test('a range of lines comes back exactly, with what is around it', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    writeFileSync(join(root, 'f'), 'one\ntwo\r\nthree\nfour')
    expect(workspace.readText('f', { offset: 2, limit: 2, maxBytes })).toMatchObject({
      text: 'two\r\nthree\n',
      firstLine: 2,
      lastLine: 3,
      totalLines: 4,
      more: true,
    })
    expect(workspace.readText('f', { offset: 4, maxBytes })).toMatchObject({ text: 'four', lastLine: 4, more: false })
    expect(workspace.readText('f', { offset: 5, maxBytes })).toMatchObject({ ok: false, message: '"f" has no line 5: it has 4 lines' })
  })

  test('any text is put together again from any pages', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    fc.assert(
      fc.property(fc.string({ unit: fc.constantFrom('a', 'é', '🦋', '\n', '\r\n') }), fc.integer({ min: 1, max: 5 }), (text, limit) => {
        writeFileSync(join(root, 'f'), text)
        let joined = ''
        for (let offset = 1; ; offset += limit) {
          const page = workspace.readText('f', { offset, limit, maxBytes })
          if (!page.ok) break
          joined += page.text
          if (!page.more) break
        }
        expect(joined).toBe(text)
      }),
      { numRuns: 100 },
    )
  })

  test('a page is cut between lines, or inside a line without tearing a character', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    writeFileSync(join(root, 'f'), 'aaaa\nbbbb\ncccc\n')
    expect(workspace.readText('f', { maxBytes: 11 })).toMatchObject({ text: 'aaaa\nbbbb\n', lastLine: 2, more: true, cutLine: false })
    writeFileSync(join(root, 'g'), `${'é'.repeat(100)}\n`)
    expect(workspace.readText('g', { maxBytes: 11 })).toMatchObject({ text: 'é'.repeat(5), cutLine: true, more: true, invalid: false })
  })

  test('an empty file, a missing last newline and an exact chunk border are counted right', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    writeFileSync(join(root, 'empty'), '')
    expect(workspace.readText('empty', { maxBytes })).toMatchObject({ ok: true, text: '', totalLines: 0, lastLine: 0, more: false })
    for (const [text, lines] of [
      ['a', 1],
      ['a\n', 1],
      ['a\n\n', 2],
      [`${'x'.repeat(65_535)}\n`, 1],
      [`${'x'.repeat(65_536)}\n`, 1],
      [`${'x\n'.repeat(32_768)}y`, 32_769],
    ] as const) {
      writeFileSync(join(root, 'f'), text)
      expect(workspace.readText('f', { limit: 1, maxBytes })).toMatchObject({ totalLines: lines })
    }
  })

  test('invalid UTF-8 is shown and said', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    writeFileSync(join(root, 'latin'), Uint8Array.of(0x63, 0x61, 0x66, 0xe9, 0x0a))
    expect(workspace.readText('latin', { maxBytes })).toMatchObject({ ok: true, text: 'caf�\n', invalid: true })
  })

  test('unicode names, a name that ends in " (deleted)" and a root given through a link are found', () => {
    using fixture = createFixture()
    const { root, base, workspace } = fixture
    for (const name of ['ünï 🦋.txt', 'x (deleted)', 'new\nline']) {
      writeFileSync(join(root, name), name)
      expect(workspace.readText(name, { maxBytes })).toMatchObject({ ok: true, text: name, path: name })
    }
    symlinkSync(root, join(base, 'alias'))
    const aliased = openWorkspace({ root: join(base, 'alias'), check: (path) => ({ ok: path.startsWith(root), rule: 'r', reason: 'r' }) })
    expect(aliased.root).toBe(root)
    expect(aliased.readText(join(base, 'alias/x (deleted)'), { maxBytes })).toMatchObject({ ok: true })
  })

  test('bytes come whole or not at all', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    writeFileSync(join(root, 'b'), Uint8Array.of(0, 255, 10))
    expect(workspace.readBytes('b', { maxBytes: 3 })).toMatchObject({ ok: true, bytes: Uint8Array.of(0, 255, 10) })
    expect(workspace.readBytes('b', { maxBytes: 2 })).toMatchObject({ ok: false, message: '"b" is too large: 3 bytes, at most 2 are read' })
  })

  test('a scan hands out every line once, long ones cut, and stops at a NUL', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    const long = 'x'.repeat(200_000)
    writeFileSync(join(root, 'f'), `a\r\n${long}\nlast`)
    const lines: string[] = []
    const answer = workspace.scan('f', { maxLineBytes: 10, onLine: (number, text) => lines.push(`${number}:${text()}`) > 0 })
    expect(answer).toMatchObject({ ok: true, binary: false, complete: true })
    expect(lines).toEqual(['1:a', `2:${'x'.repeat(10)}`, '3:last'])
    writeFileSync(join(root, 'b'), 'a\n\0\nb')
    expect(workspace.scan('b', { maxLineBytes: 10, onLine: () => true })).toMatchObject({ ok: true, binary: true })
  })

  test('a hard link inside is an ordinary file', () => {
    using fixture = createFixture()
    const { workspace, root } = fixture
    writeFileSync(join(root, 'a'), 'x')
    linkSync(join(root, 'a'), join(root, 'b'))
    chmodSync(join(root, 'a'), 0o640)
    expect(workspace.readText('b', { maxBytes })).toMatchObject({ ok: true, text: 'x' })
    expect(workspace.stat('b')).toMatchObject({ ok: true, type: 'file', size: 1, mode: 0o640 })
  })
})
