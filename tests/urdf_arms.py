"""A small arm as URDF, whose links have collision geometry."""

INERTIA = '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/>'
ARM = f"""<robot name="arm">
 <link name="base"><collision><geometry><cylinder radius="0.1" length="0.2"/></geometry></collision></link>
 <joint name="a" type="revolute"><parent link="base"/><child link="upper"/><origin xyz="0 0 0.3"/><axis xyz="0 0 1"/>
  <limit lower="-2" upper="2" velocity="2" effort="50"/></joint>
 <link name="upper"><inertial><mass value="2"/>{INERTIA}</inertial>
  <collision><origin xyz="0.1 0.2 0.3" rpy="0.3 -0.5 0.7"/><geometry><box size="0.4 0.1 0.3"/></geometry></collision>
  <collision><geometry><mesh filename="nowhere.stl"/></geometry></collision></link>
 <joint name="b" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0.5 0 0" rpy="1.5707963 0 0"/>
  <axis xyz="0 0 1"/><limit lower="-2" upper="2" velocity="2" effort="50"/></joint>
 <link name="fore"><inertial><mass value="1"/>{INERTIA}</inertial>
  <collision><geometry><mesh filename="nowhere.stl"/></geometry></collision></link>
 <joint name="c" type="fixed"><parent link="fore"/><child link="tool"/><origin xyz="0 0.1 0.2" rpy="0 0 1"/></joint>
 <link name="tool"><collision><origin xyz="0.05 0 0"/><geometry><sphere radius="0.04"/></geometry></collision></link>
</robot>"""
