import { builtinModules } from 'node:module';
import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import { createNodeResolver, importX } from 'eslint-plugin-import-x';
import tseslint from 'typescript-eslint';

/** What each folder of src may import from its siblings. A folder that is not named here may import nothing. */
const base = ['schema', 'errors', 'text', 'platform', 'config'];
const world = [...base, 'driver', 'keeper', 'transcripts', 'audit', 'workspace'];
const layers = {
  schema: [],
  errors: [],
  text: [],
  platform: ['errors'],
  config: ['schema', 'errors', 'platform'],
  'scripted-model': [],
  driver: base,
  keeper: base,
  transcripts: base,
  store: base,
  audit: base,
  workspace: base,
  engine: world,
  views: [...world, 'engine'],
  mcp: [...world, 'engine', 'views'],
  transports: [...world, 'engine', 'views', 'mcp'],
  fleet: [...world, 'store', 'engine', 'views', 'mcp', 'transports'],
  hub: [...world, 'store', 'engine', 'views', 'mcp', 'transports', 'fleet'],
  cli: [...world, 'store', 'engine', 'views', 'mcp', 'transports', 'fleet', 'hub', 'scripted-model'],
  bin: ['errors', 'platform', 'config', 'keeper', 'cli'],
};

const zones = Object.entries(layers).map(([layer, allowed]) => ({
  target: `./src/${layer}`,
  from: './src',
  except: [layer, ...allowed].map((name) => `./${name}`),
  message: `src/${layer} may import ${allowed.length > 0 ? `only ${allowed.join(', ')}` : 'no other folder of src'}.`,
}));

zones.push({
  target: './src/index.ts',
  from: ['./src/bin', './src/cli', './src/scripted-model'],
  message: 'The embedding library knows nothing of the command.',
});

zones.push(
  {
    target: './src/workspace/git',
    from: ['./src/workspace/report', './src/workspace/worktree', './src/workspace/workspace.ts'],
    message: 'src/workspace/git runs git; it knows neither reports nor worktrees.',
  },
  {
    target: './src/workspace/report',
    from: ['./src/workspace/worktree', './src/workspace/workspace.ts'],
    message: 'src/workspace/report may import only src/workspace/git.',
  },
  {
    target: './src/workspace/worktree',
    from: './src/workspace/workspace.ts',
    message: 'src/workspace/workspace.ts puts its folders together; they do not import it.',
  },
  {
    target: ['http', 'api', 'socket', 'auth', 'notify', 'rules', 'metrics'].map((name) => `./src/hub/${name}`),
    from: './src/hub/hub.ts',
    message: 'src/hub/hub.ts puts its folders together; they do not import it.',
  },
);

const outsideEngine = ['views', 'mcp', 'transports', 'fleet', 'hub', 'cli'];
const liveSessions = 'Live sessions stay in src/engine: commands go in, records come out (src/engine/client.ts).';
zones.push({
  target: ['index.ts', ...outsideEngine].map((name) => `./src/${name}`),
  from: ['session/session.ts', 'conversation/conversation.ts', 'elsewhere/remote-session.ts'].map(
    (name) => `./src/engine/${name}`,
  ),
  message: liveSessions,
});

const bareBuiltins = {
  regex: `^(${builtinModules.filter((name) => !name.startsWith('_') && !name.startsWith('node:')).join('|')})$`,
  message: 'Write node: before the name of a built-in module.',
};
const agentSdk = {
  regex: '^@anthropic-ai/claude-agent-sdk',
  message: 'Only src/driver and src/transcripts know the Agent SDK.',
};
const devOnly = {
  regex: '(^|/)test/|^(vitest|fast-check)$',
  message: 'The product does not import its tests.',
};
const zodSchemas = {
  regex: '/schema/(?!setting-choices\\.ts$)',
  message: 'Settings are read before zod is loaded: src/schema/setting-choices.ts has what they need.',
};
const processEnv = {
  name: 'node:process',
  importNames: ['env', 'stdout'],
  message: 'Use the global process, so that the rules on process.env and process.stdout apply.',
};

const noEnv = {
  object: 'process',
  property: 'env',
  message: 'Only src/config reads the environment; take what you need as a parameter.',
};
const noStdout = {
  object: 'process',
  property: 'stdout',
  message: 'stdout belongs to the protocol: only src/transports and src/cli write to it.',
};

const noWallClock = {
  object: 'Date',
  property: 'now',
  message: 'Measure with clock.instant(), show clock.wallTime(): the system clock may be set at any time.',
};

const restrictedImports = (...patterns) => ({
  'no-restricted-imports': ['error', { paths: [processEnv], patterns: [bareBuiltins, ...patterns] }],
});
// no-restricted-imports does not see import('…').
const restrictedDynamicImports = (...selectors) => ({ 'no-restricted-syntax': ['error', ...selectors] });
const dynamicAgentSdk = {
  selector: 'ImportExpression[source.value=/^@anthropic-ai\\u002Fclaude-agent-sdk/]',
  message: agentSdk.message,
};

export default defineConfig(
  globalIgnores(['dist/', '.build/', 'coverage/']),
  { linterOptions: { reportUnusedDisableDirectives: 'error' } },

  {
    files: ['**/*.{ts,tsx}'],
    extends: [js.configs.recommended, tseslint.configs.strictTypeChecked, tseslint.configs.stylisticTypeChecked],
    languageOptions: {
      parserOptions: { projectService: true, tsconfigRootDir: import.meta.dirname },
    },
    plugins: { 'import-x': importX },
    settings: {
      'import-x/extensions': ['.ts', '.tsx'],
      'import-x/parsers': { '@typescript-eslint/parser': ['.ts', '.tsx'] },
      'import-x/resolver-next': [createNodeResolver({ extensions: ['.ts', '.tsx', '.mjs', '.js', '.json'] })],
    },
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'no-console': ['error', { allow: ['warn', 'error'] }],
      'object-shorthand': 'error',
      'prefer-const': 'error',
      ...restrictedImports(),

      'import-x/no-cycle': ['error', { ignoreExternal: true }],
      'import-x/no-self-import': 'error',
      'import-x/no-duplicates': 'error',
      'import-x/no-default-export': 'error',
      'import-x/no-restricted-paths': ['error', { basePath: import.meta.dirname, zones }],

      '@typescript-eslint/consistent-type-imports': [
        'error',
        { fixStyle: 'inline-type-imports', disallowTypeAnnotations: false },
      ],
      '@typescript-eslint/consistent-type-exports': 'error',
      '@typescript-eslint/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
      '@typescript-eslint/no-misused-promises': ['error', { checksVoidReturn: { arguments: true, attributes: true } }],
      '@typescript-eslint/restrict-template-expressions': ['error', { allowNumber: true, allowBoolean: true }],
      '@typescript-eslint/no-confusing-void-expression': 'off',
      // TypeScript keeps a property narrowed across an await, so the rule calls `if (closed) return` after one dead code.
      '@typescript-eslint/no-unnecessary-condition': 'off',
      '@typescript-eslint/no-unused-vars': ['error', { argsIgnorePattern: '^_', ignoreRestSiblings: true }],
      '@typescript-eslint/no-invalid-void-type': 'off',
      // Implementations of asynchronous interfaces need not await.
      '@typescript-eslint/require-await': 'off',
      // There are no enums: erasableSyntaxOnly.
      '@typescript-eslint/no-unsafe-enum-assignment': 'off',
      '@typescript-eslint/no-unsafe-enum-comparison': 'off',
      '@typescript-eslint/consistent-type-definitions': 'off',
      '@typescript-eslint/no-empty-function': 'off',
      '@typescript-eslint/no-extraneous-class': 'off',
      // `type Json = { [key: string]: … }` and Record both read well where they are used.
      '@typescript-eslint/consistent-indexed-object-style': 'off',
    },
  },

  {
    files: ['src/**/*.ts'],
    ignores: ['**/*.test.ts'],
    rules: {
      ...restrictedImports(agentSdk, devOnly),
      ...restrictedDynamicImports(dynamicAgentSdk),
      // The package says that its modules have no side effects, so the bundler drops an import that binds nothing.
      'import-x/no-unassigned-import': 'error',
      'no-restricted-properties': ['error', noEnv, noStdout],
    },
  },
  {
    // What the engine itself and its tests get from an Engine.
    files: outsideEngine.map((name) => `src/${name}/**/*.ts`),
    ignores: ['**/*.test.ts'],
    rules: restrictedDynamicImports(dynamicAgentSdk, {
      selector:
        'MemberExpression[object.name="engine"][property.name=/^(find|finder|recall|reply|session|sessions|start)$/]',
      message: liveSessions,
    }),
  },
  {
    files: ['src/driver/**/*.ts', 'src/transcripts/**/*.ts'],
    ignores: ['**/*.test.ts'],
    rules: { ...restrictedImports(devOnly), 'no-restricted-syntax': 'off' },
  },
  {
    files: ['src/engine/**/*.ts', 'src/mcp/**/*.ts'],
    ignores: ['**/*.test.ts', 'src/engine/clock.ts'],
    rules: { 'no-restricted-properties': ['error', noEnv, noStdout, noWallClock] },
  },
  {
    files: ['src/config/**/*.ts'],
    ignores: ['**/*.test.ts'],
    rules: restrictedImports(agentSdk, devOnly, zodSchemas),
  },
  {
    // bin hands process.env to config and reads nothing from it.
    files: ['src/config/**/*.ts', 'src/bin/**/*.ts'],
    rules: { 'no-restricted-properties': ['error', noStdout] },
  },
  {
    files: ['src/cli/**/*.ts', 'src/transports/**/*.ts'],
    rules: { 'no-restricted-properties': ['error', noEnv] },
  },
  {
    files: ['src/cli/**/*.ts', 'scripts/**/*.ts'],
    rules: { 'no-console': 'off' },
  },

  {
    files: ['**/*.test.ts', 'test/**/*.ts'],
    rules: {
      'import-x/no-restricted-paths': 'off',
      'no-restricted-properties': 'off',
      // Answers from outside are asserted on, not parsed.
      '@typescript-eslint/no-non-null-assertion': 'off',
      '@typescript-eslint/no-unsafe-argument': 'off',
      '@typescript-eslint/no-unsafe-assignment': 'off',
      '@typescript-eslint/no-unsafe-call': 'off',
      '@typescript-eslint/no-unsafe-member-access': 'off',
      '@typescript-eslint/no-unsafe-return': 'off',
      '@typescript-eslint/unbound-method': 'off',
    },
  },
  {
    // It runs in a browser and knows the hub's API only; the schemas are types to it, so that zod is not bundled.
    // src/text and src/schema/enums.ts are pure and run anywhere.
    files: ['dashboard/**/*.{ts,tsx}'],
    ignores: ['**/*.test.ts'],
    rules: {
      'no-restricted-imports': [
        'error',
        {
          patterns: [
            { regex: '^node:', message: 'The dashboard runs in a browser.' },
            {
              regex: '/src/(?!text/|schema/enums\\.ts$)',
              allowTypeImports: true,
              message: 'Of the product the dashboard imports types, src/schema/enums.ts and src/text only.',
            },
          ],
        },
      ],
      'no-restricted-properties': [
        'error',
        { property: 'innerHTML', message: 'Content is shown as text, never parsed as HTML.' },
        { property: 'dangerouslySetInnerHTML', message: 'Content is shown as text, never parsed as HTML.' },
      ],
      'no-restricted-syntax': [
        'error',
        {
          selector: 'JSXAttribute[name.name=/^(dangerouslySetInnerHTML|innerHTML|srcdoc)$/]',
          message: 'Content is shown as text, never parsed as HTML.',
        },
      ],
    },
  },
  { files: ['*.config.ts'], rules: { 'import-x/no-default-export': 'off' } },
  {
    files: ['**/*.{js,mjs}'],
    extends: [js.configs.recommended],
    rules: {
      eqeqeq: ['error', 'always', { null: 'ignore' }],
      'prefer-const': 'error',
      'no-restricted-imports': ['error', { patterns: [bareBuiltins] }],
      // TypeScript, not this rule, knows the globals of Node.
      'no-undef': 'off',
    },
  },
  {
    // Files share the modules of their worker: a hook in a helper would hold for the first file alone.
    files: ['test/**/*.ts'],
    ignores: ['**/*.test.ts'],
    rules: {
      'no-restricted-syntax': [
        'error',
        {
          selector: 'Program > ExpressionStatement > CallExpression[callee.name=/^(before|after)(Each|All)$/]',
          message: 'Use onTestFinished where the helper is called, or export a function that sets the hook up.',
        },
      ],
    },
  },
);
