import type { ComponentChildren } from 'preact';

function Icon({ children }: { children: ComponentChildren }) {
  return (
    <svg class="icon" viewBox="0 0 20 20" width="20" height="20" aria-hidden="true" focusable="false">
      {children}
    </svg>
  );
}

export const InboxIcon = () => (
  <Icon>
    <path d="M3 11.5 5.2 4h9.6L17 11.5V16H3v-4.5h4l1 2h4l1-2h4" />
  </Icon>
);
export const SessionsIcon = () => (
  <Icon>
    <path d="M3 4.5h14v11H3zM6 8l2.2 2L6 12M10 12.5h4" />
  </Icon>
);
export const AuditIcon = () => (
  <Icon>
    <path d="M5 3h10v14H5zM8 7h4M8 10h4M8 13h2" />
  </Icon>
);
export const TokensIcon = () => (
  <Icon>
    <path d="M10.5 9.5 16.5 3.5M14 6l2 2M12.8 7.2l1.4 1.4M11 12.5a3.5 3.5 0 1 1-7 0 3.5 3.5 0 0 1 7 0z" />
  </Icon>
);
export const RulesIcon = () => (
  <Icon>
    <path d="M4 5h2m3 0h7M4 10h2m3 0h7M4 15h2m3 0h7" />
  </Icon>
);
export const PlusIcon = () => (
  <Icon>
    <path d="M10 4v12M4 10h12" />
  </Icon>
);
export const ChevronIcon = () => (
  <Icon>
    <path d="m7.5 5 5 5-5 5" />
  </Icon>
);
export const BellIcon = () => (
  <Icon>
    <path d="M10 3a4.5 4.5 0 0 0-4.5 4.5c0 4-1.5 5-1.5 6h12c0-1-1.5-2-1.5-6A4.5 4.5 0 0 0 10 3zM8.5 16.5h3" />
  </Icon>
);
export const PauseIcon = () => (
  <Icon>
    <path d="M7 5v10M13 5v10" />
  </Icon>
);
export const CancelIcon = () => (
  <Icon>
    <path d="M10 3a7 7 0 1 1 0 14 7 7 0 0 1 0-14zM7.5 7.5l5 5M12.5 7.5l-5 5" />
  </Icon>
);
