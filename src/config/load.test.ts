import { describe, expect, test } from 'bun:test'
import { mkdirSync, mkdtempSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { channelRows } from '../channels/list.ts'
import { describeProblem, providerNamed } from './config.ts'
import { configOf, load, loaded, minimum, problemsOf, projectFile, userFile } from './load.fixture.ts'
import { loadConfig } from './load.ts'

const wire = (name: string, more = '') =>
  `[providers.models.${name}]\nkind = "openai-compatible"\nbase_url = "http://localhost:1/v1"\nmodel = "m-${name}"\n${more}`

describe('what is refused', () => {
  test('a project may not say where records go, even when it is trusted', () => {
    for (const line of [
      '[memory]\npath = "/tmp/x"',
      '[receipts]\npath = "/tmp/x"',
      '[receipts]\nenabled = false',
      'workspace_dir = "/"',
      '[security]\naudit_log = false',
    ])
      expect(problemsOf({ project: line })[0]).toContain('a project may not set this')
  })

  test('a project may not define providers: it could send a key anywhere', () => {
    expect(problemsOf({ project: wire('evil') })[0]).toContain('a project may not set this')
  })

  test('a project may not permit more than the user does', () => {
    expect(problemsOf({ project: '[security]\nautonomy = "full"' })).toEqual([
      '2:12 security.autonomy: a project may only make this stricter than your own setting ("supervised"); change your own config file instead',
    ])
    expect(problemsOf({ project: '[security]\nworkspace_only = false' })[0]).toContain('stricter')
    expect(problemsOf({ project: '[security]\ndirect = "allow"' })[0]).toContain('stricter')
    expect(loaded({ project: '[security]\ndirect = "deny"' }).config.security.direct).toBe('deny')
    expect(problemsOf({ user: '[security]\ndirekt = "deny"' })[0]).toContain('did you mean "direct"')
    expect(problemsOf({ project: '[security]\nallow_commands = ["curl"]' })[0]).toContain('may not set this')
    expect(problemsOf({ project: '[security]\napprove_all_medium = true' })[0]).toContain('may not set this')
    expect(problemsOf({ user: '[limits]\nmax_run_usd = 1', project: '[limits]\nmax_run_usd = 2' })[0]).toContain(
      'stricter than your own setting (1)',
    )
    expect(
      problemsOf({ user: '[channels.cli]\ntools_allow = ["time"]', project: '[channels.cli]\ntools_allow = ["time", "shell"]' })[0],
    ).toContain('this adds "shell"')
  })

  test('a project in a folder that is not trusted is ignored, and a notice says how to trust it', () => {
    const { config, notices, project } = loaded({ project: '[limits]\nmax_tool_rounds = 9', trusted: false })
    expect(config.limits.maxToolRounds).toBe(100)
    expect(project).toBeUndefined()
    expect(notices).toEqual([
      `${projectFile} is ignored: this folder is not trusted. Read it, then trust the folder with: braidclaw trust /work`,
    ])
  })

  test('even a broken file of an untrusted project breaks nothing', () => {
    expect(load({ project: '[[[', trusted: false }).ok).toBe(true)
    expect(load({ project: '[[[', trusted: true }).ok).toBe(false)
  })

  test('default_provider must be there', () => {
    expect(problemsOf({ user: `default_provider = "opnai"\n${wire('openai')}` })).toEqual([
      '1:20 default_provider: unknown provider "opnai"; did you mean "openai"?',
    ])
    expect(problemsOf({ user: 'default_provider = "zzz"' })[0]).toContain('there are: local')
    expect(problemsOf({ flags: { provider: 'constructor' } })[0]).toStartWith('--provider default_provider: unknown provider "constructor"')
  })

  test('reliable and router must name providers there are, and no circle', () => {
    const user = `[providers.models.a]\nkind = "reliable"\nproviders = ["b", "nobody"]
[providers.models.b]\nkind = "router"\nroutes = { cheap = "missing" }\ndefault = "a"
[providers.models.c]\nkind = "reliable"\nproviders = ["c"]`
    expect(problemsOf({ user })).toEqual([
      '3:13 providers.models.a.providers: unknown provider "nobody"; there are: local, a, b, c. Add [providers.models.nobody] or choose one of these',
      '3:13 providers.models.a.providers: these providers lead in a circle: a → b → a; take one of them out',
      '6:10 providers.models.b.routes: unknown provider "missing"; there are: local, a, b, c. Add [providers.models.missing] or choose one of these',
      '10:13 providers.models.c.providers: these providers lead in a circle: c → c; take one of them out',
    ])
  })

  test('a provider that lacks something, or has what its kind does not know', () => {
    expect(problemsOf({ user: '[providers.models.x]\nmodel = "m"' })[0]).toContain('x.kind: is missing (one of "mock", "openai-compatible"')
    expect(problemsOf({ user: '[providers.models.x]' })[0]).toBe('1:1 providers.models.x: is empty; give it at least a kind')
    expect(problemsOf({ user: '[providers.models.x]\nkind = "openai-compatible"' })).toEqual([
      expect.stringContaining('x.model: is missing'),
      expect.stringContaining('x.base_url: is missing'),
    ])
    expect(problemsOf({ user: '[providers.models.x]\nkind = "mock"\nbase_url = "http://h/v1"' })).toEqual([
      expect.stringMatching(
        /^3:12 providers\.models\.x\.base_url: means nothing for kind = "mock", only for "openai-compatible", "anthropic", "openai"(, "[\w-]+")*; remove it$/,
      ),
    ])
  })

  test('a provider of a wrong kind is named once, and not also called missing', () => {
    expect(problemsOf({ user: 'default_provider = "x"\n[providers.models.x]\nkind = "opnai"\nmodel = "m"' })).toEqual([
      expect.stringContaining('3:8 providers.models.x.kind: "opnai" is not allowed; allowed values: "mock"'),
    ])
  })

  test('wrong variables and flags are named by their own name', () => {
    expect(problemsOf({ env: { BRAIDCLAW_AUTONOMY: 'godmode', BRAIDCLAW_LIMITS_MAX_PARALLEL: 'many' }, flags: { maxTurns: 0 } })).toEqual([
      'BRAIDCLAW_AUTONOMY security.autonomy: "godmode" is not allowed; allowed values: "readonly", "supervised", "full"',
      'BRAIDCLAW_LIMITS_MAX_PARALLEL limits.max_parallel: must be a whole number from 1 to 64 (calls), found the text "many"',
      '--max-turns limits.max_tool_rounds: 0 is out of range; must be from 1 to 1000 (rounds)',
    ])
  })

  test('an unreadable home, a folder for a file, a file for a folder: a problem, never a throw', () => {
    const dir = mkdtempSync(join(tmpdir(), 'config-'))
    mkdirSync(join(dir, 'a', 'config.toml'), { recursive: true })
    writeFileSync(join(dir, 'file'), '')
    symlinkSync(join(dir, 'loop'), join(dir, 'loop'))
    const at = (home: string) => {
      const result = loadConfig({ home: join(dir, home), channels: channelRows, env: { HOME: dir }, cwd: dir, trusted: () => false })
      return result.ok ? 'ok' : result.problems.map(describeProblem).join('\n')
    }
    expect(at('a')).toBe(`${dir}/a/config.toml: this file is a folder, not a file; move it away and run "braidclaw init"`)
    expect(at('file')).toContain('a part of the path is a file, not a folder (ENOTDIR)')
    expect(at('loop')).toContain('symbolic links lead in a circle (ELOOP)')
    expect(at('none')).toBe('ok')
  })
})

describe('what holds', () => {
  test('the smallest complete config is valid as it stands', () => {
    const photos = { photoMaxMb: 10, photosKeep: 200, photosKeepMb: 200 }
    expect(configOf({ user: minimum })).toEqual({
      workspaceDir: '/home/ann/braidclaw-workspace',
      defaultProvider: 'local',
      defaultModel: 'mock',
      proofOfDone: 'show',
      proofOfDoneModel: false,
      agents: {},
      mcp: { servers: {} },
      security: {
        autonomy: 'supervised',
        workspaceOnly: true,
        forbiddenPaths: ['/etc', '/sys', '/boot', '/home/ann/.ssh'],
        forbiddenReads: expect.arrayContaining(['.env', '*.pem']),
        forbiddenCommands: ['rm', 'shutdown', 'reboot', 'mkfs', 'dd'],
        allowCommands: [],
        allowedDomains: [],
        allowedPorts: [],
        approveAllMedium: false,
        ...{
          ask: 'changes',
          unlistedCommands: 'ask',
          readonlyCommands: 'block',
          egress: 'ask',
          direct: 'ask',
          toolSettings: 'ask',
          allowTools: [],
          auditLog: true,
        },
      },
      limits: {
        maxToolRounds: 100,
        maxSameResults: 5,
        maxResponseBytes: 1_000_000,
        toolTimeoutS: 30,
        shellTimeoutS: 120,
        shellTimeoutMaxS: 600,
        maxBackground: 8,
        jobOutputBytes: 1_048_576,
        httpTimeoutS: 20,
        maxOutputBytes: 65_536,
        maxResultBytes: 16_777_216,
        maxParallel: 4,
        maxTurnsAtOnce: 256,
      },
      vision: {
        ...{ model: 'nvidia/nemotron-nano-12b-v2-vl:free', maxImages: 1, maxCharsPerImage: 4_000, maxTotalChars: 6_000, timeoutS: 60 },
      },
      providers: {
        models: {
          local: { kind: 'mock', name: 'local', model: 'mock', totalTimeoutS: 600 },
          openai_compatible: {
            kind: 'openai-compatible',
            name: 'openai_compatible',
            model: 'local-model',
            baseUrl: 'http://localhost:1234/v1',
            apiKeyEnv: 'OPENAI_API_KEY',
            stream: true,
            idleTimeoutS: 60,
            totalTimeoutS: 600,
            maxRetries: 2,
            maxConcurrent: 16,
          },
        },
      },
      channels: {
        cli: { enabled: true, toolsAllow: ['file_read', 'file_list', 'time', 'memory_search', 'shell'] },
        fifo: { profile: 'operator', users: ['*'], approvers: [] },
        discord: { enabled: false, tokenEnv: 'DISCORD_BOT_TOKEN', channelIds: [], ...{ profile: 'chat', users: [], approvers: [] } },
        telegram: { enabled: false, tokenEnv: 'TELEGRAM_BOT_TOKEN', profile: 'chat', users: [], approvers: [], ...photos },
        http: { enabled: false, host: '127.0.0.1', port: 4127, allowedHosts: [], profile: 'chat' },
        plugins: { enabled: false, names: [], profile: 'chat', users: [], approvers: [] },
      },
      tools: {
        dir: `/home/ann/.braidclaw/tools`,
        executables: [],
        env: ['SHELLCLAW_STUB'],
        backend: 'native',
        skillsBytes: 4096,
        browser: false,
      },
      memory: {
        backend: 'sqlite',
        path: '/home/ann/.braidclaw/memory.sqlite',
        historyMax: 200,
        historyKeep: 40,
        resultsMaxBytes: 268_435_456,
      },
      changes: { keepSets: 200, keepMb: 1000, keepDays: 30 },
      hooks: { timeoutS: 10, claudeCode: true },
      receipts: { enabled: true, hmac: true, path: '/home/ann/.braidclaw/tool_receipts.log' },
      log: { level: 'warn' },
    })
  })

  test('without any file the current folder is the workspace and the offline helper answers', () => {
    const { config, file, notices } = loaded({})
    expect(config).toMatchObject({
      workspaceDir: '/work',
      defaultProvider: 'local',
      defaultModel: 'mock',
      proofOfDone: 'show',
      proofOfDoneModel: false,
      security: { autonomy: 'supervised' },
    })
    expect([file, notices]).toEqual([undefined, []])
  })

  test('with an empty file every default holds, and the workspace is the folder one is in', () => {
    const { config, file } = loaded({ user: '' })
    expect([config.workspaceDir, file]).toEqual(['/work', userFile])
  })

  test('flags win over the environment, it over the project, it over the user, it over defaults', () => {
    const layers = {
      user: '[limits]\nmax_tool_rounds = 2',
      project: '[limits]\nmax_tool_rounds = 3',
      env: { BRAIDCLAW_LIMITS_MAX_TOOL_ROUNDS: '4' },
    }
    const won = (given: Parameters<typeof loaded>[0]) => {
      const { config, origins } = loaded(given)
      return [config.limits.maxToolRounds, origins['limits.max_tool_rounds']?.source, origins['limits.max_tool_rounds']?.where]
    }
    expect(won({ ...layers, flags: { maxTurns: 6 } })).toEqual([6, 'flag', '--max-turns'])
    expect(won(layers)).toEqual([4, 'environment', 'BRAIDCLAW_LIMITS_MAX_TOOL_ROUNDS'])
    expect(won({ ...layers, env: {} })).toEqual([3, 'project', projectFile])
    expect(won({ user: layers.user })).toEqual([2, 'user', userFile])
    for (const given of [{ user: '' }, {}]) expect(won(given)).toEqual([100, 'default', 'built in'])
  })

  test('origins know the line', () => {
    expect(loaded({ user: minimum }).origins['security.autonomy']).toEqual({ source: 'user', where: userFile, line: 6, column: 12 })
  })

  test('a trusted project tightens: lower level, joined prohibitions, fewer tools', () => {
    const user = '[security]\nforbidden_commands = ["dd"]\n[channels.cli]\ntools_allow = ["time", "shell"]'
    const project =
      '[security]\nautonomy = "readonly"\nforbidden_commands = ["curl"]\nforbidden_paths = ["/srv"]\n[channels.cli]\ntools_allow = ["time"]\n[limits]\nmax_run_tokens = 10'
    const { security, channels, limits } = configOf({ user, project })
    expect(security).toMatchObject({ autonomy: 'readonly', forbiddenCommands: ['dd', 'curl'] })
    expect(security.forbiddenPaths).toEqual(['/etc', '/sys', '/boot', '/home/ann/.ssh', '/srv'])
    expect([channels.cli?.toolsAllow, limits.maxRunTokens]).toEqual([['time'], 10])
  })

  test("in one's own home folder the user's file is no project", () => {
    expect(loaded({ user: minimum, cwd: '/home/ann', trusted: false }).notices).toEqual([])
  })

  test('short and generic variables; lists by comma or as JSON; an empty variable is not set', () => {
    const { security, workspaceDir, channels } = configOf({
      env: {
        BRAIDCLAW_WORKSPACE: 'sub/..//x',
        BRAIDCLAW_AUTONOMY: 'full',
        BRAIDCLAW_SECURITY_WORKSPACE_ONLY: '0',
        BRAIDCLAW_SECURITY_ALLOW_COMMANDS: 'make, cargo',
        BRAIDCLAW_SECURITY_ALLOWED_PORTS: '8080,8443',
        BRAIDCLAW_SECURITY_FORBIDDEN_PATHS: '',
        BRAIDCLAW_CHANNELS_CLI_TOOLS_ALLOW: '[]',
      },
    })
    expect(workspaceDir).toBe('/work/x')
    expect(security).toMatchObject({ autonomy: 'full', workspaceOnly: false, allowCommands: ['make', 'cargo'], allowedPorts: [8080, 8443] })
    expect(security.forbiddenPaths).toHaveLength(4)
    expect(channels.cli?.toolsAllow).toEqual([])
  })

  test('of two names for one setting the short one decides, and the other is mentioned', () => {
    const { config, notices } = loaded({ env: { BRAIDCLAW_AUTONOMY: 'readonly', BRAIDCLAW_SECURITY_AUTONOMY: 'full' } })
    expect(config.security.autonomy).toBe('readonly')
    expect(notices).toEqual(['BRAIDCLAW_SECURITY_AUTONOMY is set too and not used: BRAIDCLAW_AUTONOMY decides'])
  })

  test('a variable that is nearly a setting is mentioned; foreign and our other ones are not', () => {
    const env = { BRAIDCLAW_LIMITS_MAX_TOL_ROUNDS: '3', BRAIDCLAW_LOG: 'json', BRAIDCLAW_HOME: '/x', BRAIDCLAW_LLM_BACKEND: 'stub' }
    expect(loaded({ env }).notices).toEqual([
      'BRAIDCLAW_LIMITS_MAX_TOL_ROUNDS is not a setting and was ignored; did you mean BRAIDCLAW_LIMITS_MAX_TOOL_ROUNDS?',
    ])
  })

  test('BRAIDCLAW_HOME moves the whole tree: ~/.braidclaw then means that folder', () => {
    const { memory, receipts, security } = configOf({ user: minimum, home: '/tmp/other' })
    expect([memory.path, receipts.path]).toEqual(['/tmp/other/memory.sqlite', '/tmp/other/tool_receipts.log'])
    expect(security.forbiddenPaths).toContain('/home/ann/.ssh')
  })

  test('a fixture starts at the folder of its file; BRAIDCLAW_MOCK_FIXTURE sets that of every mock', () => {
    const user = '[providers.models.local]\nkind = "mock"\nfixture = "f.json"\n[providers.models.other]\nkind = "mock"'
    const fixtures = (env: { readonly [name: string]: string }) =>
      Object.values(configOf({ user, env }).providers.models).map((model) => model.kind === 'mock' && model.fixture)
    expect(fixtures({})).toEqual(['/home/ann/.braidclaw/f.json', undefined])
    expect(fixtures({ BRAIDCLAW_MOCK_FIXTURE: 'g.json' })).toEqual(['/work/g.json', '/work/g.json'])
  })

  test('no provider needs its key to load', () => {
    const models = configOf({
      user: '[providers.models.a]\nkind = "anthropic"\nmodel = "m"\n[providers.models.o]\nkind = "openai"\nmodel = "m"',
    }).providers.models
    expect(models).toMatchObject({ a: { apiKeyEnv: 'ANTHROPIC_API_KEY' }, o: { apiKeyEnv: 'OPENAI_API_KEY' } })
  })

  test('names that every object has are no providers', () => {
    const config = configOf({})
    expect([providerNamed(config, 'constructor'), providerNamed(config, 'local')?.kind]).toEqual([undefined, 'mock'])
  })
})
